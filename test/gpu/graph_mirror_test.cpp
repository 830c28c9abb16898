// The form in which a graph's mirror compares rows: the CPU's choice for the same index, and the CPU's bytes.
#include "graph/mirror.h"

#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <random>

#include "device/error.h"
#include "graph_fixture.h"
#include "methods/graph/byte_choice.h"
#include "methods/graph/byte_rows.h"
#include "methods/graph/graph.h"
#include "methods/ivfadc/ivfadc.h"
#include "numeric/half_codec.h"

namespace pgwarp::test
{
namespace
{

using cuda::graph::Form;
using cuda::graph::GraphView;
using cuda::graph::Mirror;
using cuda::graph::TraversalForm;

constexpr std::int64_t full = 0;
constexpr std::int64_t half = 1;
constexpr std::int64_t bits = 2;

// One cloud of rows; bytes tell its near rows apart.
std::vector<float> cloud(std::size_t count, std::size_t dimensions, Metric metric)
{
    std::mt19937 generator(11);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = normal(generator) + 0.3F * static_cast<float>(i % dimensions % 5);
    }
    if (metric == Metric::cosine) normalise_rows(rows, dimensions);
    return rows;
}

// Rows along a line so long that the other dimensions vanish in a byte beside the largest difference from the mean.
std::vector<float> long_line(std::size_t count, std::size_t dimensions)
{
    std::vector<float> rows = cloud(count, dimensions, Metric::l2);
    for (std::size_t i = 0; i < count; ++i) {
        rows[i * dimensions] = 1000 * (static_cast<float>(i) / static_cast<float>(count) - 0.5F);
    }
    return rows;
}

template <class T>
std::vector<T> values_of(const Index& index, const char* name)
{
    for (const ArrayShape& array : index.builder->arrays()) {
        if (std::strcmp(array.name, name) != 0) continue;
        const std::vector<std::byte> bytes = index.contents(array);
        std::vector<T> values(bytes.size() / sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
    return {};
}

// The rows as the index keeps them.
std::vector<float> kept_rows(const Index& index)
{
    std::vector<float> rows = values_of<float>(index, array_vectors);
    if (!rows.empty()) return rows;
    const HalfCodec codec{values_of<float>(index, array_half_mean), values_of<float>(index, array_half_scale)[0]};
    const auto halves = values_of<half_bits>(index, array_half);
    const std::size_t dimensions = codec.mean.size();
    rows.resize(halves.size());
    for (std::size_t i = 0; i < rows.size(); i += dimensions) codec.decode(halves.data() + i, rows.data() + i);
    return rows;
}

bool cpu_compares_bytes(const Index& index)
{
    ThreadPool pool(0);
    const std::vector<float> rows = kept_rows(index);
    const std::size_t dimensions = index.shape.dimensions;
    const auto neighbours = values_of<std::uint32_t>(index, array_neighbours);
    const auto seeds = values_of<std::uint32_t>(index, array_seeds);
    EdgeView edges;
    edges.degree = neighbours.size() / (rows.size() / dimensions);
    edges.neighbours = neighbours;
    ByteRows bytes;
    bytes.build(
        static_cast<Metric>(index.shape.metric), dimensions, seeds, edges,
        [&](std::uint32_t row, float* out) { std::copy_n(rows.data() + row * dimensions, dimensions, out); }, pool);
    return !bytes.empty();
}

std::unique_ptr<Mirror> load_mirror(const Index& index, cuda::Context& context)
{
    auto mirror =
        std::make_unique<Mirror>(context, index.shape, index.builder->effective_options(), index.builder->arrays());
    index.write_to(*mirror);
    mirror->finish_load();
    return mirror;
}

template <class T>
std::vector<T> download(const T* from, std::size_t count)
{
    std::vector<T> values(count);
    cuda::check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "test");
    return values;
}

cuda::graph::MirrorSize size_of(const Index& index)
{
    const std::size_t seeds = values_of<std::uint32_t>(index, array_seeds).size();
    return {kept_rows(index).size() / index.shape.dimensions, seeds, index.shape.dimensions};
}

std::uint64_t most_bytes(const Index& index, Form form)
{
    const auto size = size_of(index);
    const GraphOptions options = GraphOptions::resolve(index.builder->effective_options(), index.shape.dimensions);
    return cuda::graph::device_bytes_of(options, size, form);
}

// A device without room for full vectors.
std::unique_ptr<cuda::Context> device_without_vectors(const Index& index)
{
    const std::uint64_t budget = std::min(most_bytes(index, Form::ranked) * 8 / 7 + (std::uint64_t{8} << 20),
                                          most_bytes(index, Form::whole) - 1);
    return std::make_unique<cuda::Context>(0, budget);
}

void expect_bytes_of_cpu(const Index& index, const Mirror& mirror, const std::string& what)
{
    const GraphView& view = mirror.view();
    ASSERT_EQ(view.form, TraversalForm::bytes) << what;
    const auto metric = static_cast<Metric>(index.shape.metric);
    const std::size_t dimensions = index.shape.dimensions;
    const std::vector<float> rows = kept_rows(index);
    const std::size_t count = rows.size() / dimensions;
    RowMean sampled(dimensions);
    for (const std::uint32_t row : rows_of_mean(count)) sampled.add(rows.data() + row * dimensions);
    std::vector<float> mean = sampled.mean();
    // For l2 the mean is also subtracted from queries.
    if (metric == Metric::l2) {
        EXPECT_EQ(download(view.bytes.mean, dimensions), mean) << what;
    }
    const std::size_t stride = view.bytes.stride;
    EXPECT_EQ(stride, (dimensions + 15) / 16 * 16);
    const auto codes = download(view.bytes.rows, count * stride);
    const auto terms = download(view.bytes.terms, count);
    std::vector<std::uint8_t> expected(dimensions);
    std::size_t wrong_codes = 0;
    std::size_t wrong_terms = 0;
    for (std::size_t row = 0; row < count; ++row) {
        const ByteRowTerms own =
            encode_byte_row(metric, rows.data() + row * dimensions, mean.data(), dimensions, expected.data());
        for (std::size_t d = 0; d < stride; ++d) {
            const int value = d < dimensions ? expected[d] - 128 : 0;
            wrong_codes += codes[row * stride + d] == value ? 0 : 1;
        }
        wrong_terms += terms[row].x == own.scale && terms[row].y == own.bias ? 0 : 1;
    }
    EXPECT_EQ(wrong_codes, 0U) << what;
    EXPECT_EQ(wrong_terms, 0U) << what;
}

// Seeds are also kept as halves for every form of the rows.
void expect_seeds(const Index& index, const Mirror& mirror, const std::string& what)
{
    const GraphView& view = mirror.view();
    const std::size_t dimensions = index.shape.dimensions;
    const std::vector<float> rows = kept_rows(index);
    const std::size_t padded = cuda::rows::whole_groups(view.seeds);
    const std::size_t stride = view.vectors.stride;
    const auto numbers = download(view.seed_rows, view.seeds);
    const auto halves = download(view.seed_halves.half.rows, padded * stride);
    const auto terms = download(view.seed_halves.terms, padded);
    const auto mean = download(view.seed_halves.half.mean, dimensions);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < padded; ++i) {
        double squares = 0;
        for (std::size_t d = 0; d < stride; ++d) {
            float expected = 0;
            if (i < view.seeds && d < dimensions) {
                expected = (rows[numbers[i] * dimensions + d] - mean[d]) * view.seed_halves.half.scale;
            }
            const float found = __half2float(halves[i * stride + d]);
            wrong += found == __half2float(__float2half_rn(expected)) ? 0 : 1;
            squares += static_cast<double>(found) * found;
        }
        if (i >= view.seeds) {
            wrong += std::isinf(terms[i]) ? 0 : 1;
        } else if (view.vectors.metric == Metric::l2) {
            EXPECT_NEAR(terms[i], squares, 1e-5 * squares) << what;
        } else {
            wrong += terms[i] == 0 ? 0 : 1;
        }
    }
    EXPECT_EQ(wrong, 0U) << what;
}

struct Kind {
    Metric metric;
    std::int64_t vectors;
    std::size_t dimensions;
};

class MirrorBytes : public testing::TestWithParam<Kind>
{
};

TEST_P(MirrorBytes, AreThoseOfTheCpu)
{
    const Kind kind = GetParam();
    ThreadPool pool(0);
    const std::vector<float> rows = cloud(1500, kind.dimensions, kind.metric);
    const Index index(Method::graph, kind.metric, kind.dimensions, rows,
                      make_list({{"vectors", kind.vectors}, {"degree", 16}}), pool);
    ASSERT_TRUE(cpu_compares_bytes(index));
    const auto mirror = load_mirror(index, shared_context());
    expect_bytes_of_cpu(index, *mirror, "whole");
    const GraphView& view = mirror->view();
    EXPECT_EQ(mirror->limits().row_bytes, view.bytes.stride);
    EXPECT_GE(mirror->limits().query_bytes, view.bytes.stride);
    if (kind.vectors == half) {
        EXPECT_NE(view.vectors.half.rows, nullptr);
        EXPECT_NE(view.vectors.row_terms, nullptr);
        EXPECT_LE(mirror->device_bytes(),
                  most_bytes(index, Form::whole) + cuda::graph::byte_rows_bytes(size_of(index)));
    } else {
        // The rows have no halves: bytes replace them.
        EXPECT_EQ(view.vectors.half.rows, nullptr);
        EXPECT_EQ(view.vectors.row_terms, nullptr);
        EXPECT_LE(mirror->device_bytes(), most_bytes(index, Form::whole));
        expect_seeds(index, *mirror, "whole");
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MirrorBytes,
                         testing::Values(Kind{Metric::l2, full, 33}, Kind{Metric::l2, half, 33},
                                         Kind{Metric::inner_product, full, 33}, Kind{Metric::l2, full, 100},
                                         Kind{Metric::cosine, half, 100}, Kind{Metric::cosine, full, 100},
                                         Kind{Metric::l2, full, 128}, Kind{Metric::l2, half, 128},
                                         Kind{Metric::inner_product, half, 128}, Kind{Metric::l2, full, 784},
                                         Kind{Metric::l2, half, 784}, Kind{Metric::cosine, full, 784}));

TEST(MirrorForm, IsChosenAsOnTheCpu)
{
    ThreadPool pool(0);
    const auto expect_form = [&](const std::vector<float>& rows, const Kind& kind, TraversalForm expected) {
        const std::string what = "metric " + std::to_string(static_cast<int>(kind.metric)) + " vectors " +
                                 std::to_string(kind.vectors) + " dimensions " + std::to_string(kind.dimensions);
        const Index index(Method::graph, kind.metric, kind.dimensions, rows,
                          make_list({{"vectors", kind.vectors}, {"degree", 16}}), pool);
        if (kind.vectors != bits) {
            EXPECT_EQ(cpu_compares_bytes(index), expected == TraversalForm::bytes) << what;
        }
        const auto mirror = load_mirror(index, shared_context());
        const GraphView& view = mirror->view();
        EXPECT_EQ(view.form, expected) << what;
        EXPECT_EQ(view.bytes.rows != nullptr, expected == TraversalForm::bytes) << what;
        EXPECT_EQ(view.bytes.terms != nullptr, expected == TraversalForm::bytes) << what;
        EXPECT_EQ(view.vectors.half.rows != nullptr, expected == TraversalForm::halves || kind.vectors == half) << what;
        const std::size_t dimensions = kind.dimensions;
        if (expected == TraversalForm::floats) {
            EXPECT_EQ(mirror->limits().row_bytes, dimensions * 4) << what;
            EXPECT_EQ(mirror->limits().query_bytes, (dimensions + 3) / 4 * 16) << what;
            expect_seeds(index, *mirror, what);
        }
        if (expected == TraversalForm::halves) {
            EXPECT_EQ(mirror->limits().row_bytes, (dimensions + 7) / 8 * 16) << what;
            EXPECT_EQ(mirror->limits().query_bytes, (dimensions + 7) / 8 * 32) << what;
        }
        if (kind.vectors == full) {
            EXPECT_LE(mirror->device_bytes(), most_bytes(index, Form::whole)) << what;
        }
    };
    for (const std::size_t dimensions : {32U, 63U}) {
        expect_form(long_line(2000, dimensions), {Metric::l2, full, dimensions}, TraversalForm::floats);
        expect_form(long_line(2000, dimensions), {Metric::l2, half, dimensions}, TraversalForm::halves);
        expect_form(cloud(2000, dimensions, Metric::l2), {Metric::l2, full, dimensions}, TraversalForm::bytes);
    }
    expect_form(cloud(2000, 31, Metric::l2), {Metric::l2, full, 31}, TraversalForm::floats);
    expect_form(cloud(2000, 31, Metric::l2), {Metric::l2, half, 31}, TraversalForm::halves);
    expect_form(cloud(2000, 5, Metric::cosine), {Metric::cosine, full, 5}, TraversalForm::floats);
    expect_form(cloud(2000, 64, Metric::l1), {Metric::l1, full, 64}, TraversalForm::halves);
    expect_form(cloud(2000, 64, Metric::l1), {Metric::l1, half, 64}, TraversalForm::halves);
    expect_form(cloud(2000, 64, Metric::l2), {Metric::l2, bits, 64}, TraversalForm::bits);
}

// Full vectors lie in host memory, in padded rows.
TEST(MirrorForm, IsTheSameWhereVectorsLieOnTheHost)
{
    ThreadPool pool(0);
    constexpr std::size_t count = 20000;
    constexpr std::size_t dimensions = 101;
    const ParameterList options = make_list({{"degree", 16}});
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        const Index index(Method::graph, metric, dimensions, cloud(count, dimensions, metric), options, pool);
        const auto context = device_without_vectors(index);
        const auto mirror = load_mirror(index, *context);
        ASSERT_EQ(mirror->form(), Form::ranked);
        expect_bytes_of_cpu(index, *mirror, "ranked");
        expect_seeds(index, *mirror, "ranked");
        EXPECT_LE(mirror->device_bytes(), most_bytes(index, Form::ranked));
        EXPECT_EQ(mirror->view().vectors.half.rows, nullptr);
    }
    const Index index(Method::graph, Metric::l2, dimensions, long_line(count, dimensions), options, pool);
    const auto context = device_without_vectors(index);
    const auto mirror = load_mirror(index, *context);
    ASSERT_EQ(mirror->form(), Form::ranked);
    EXPECT_EQ(mirror->view().form, TraversalForm::halves);
    EXPECT_NE(mirror->view().vectors.half.rows, nullptr);
    EXPECT_LE(mirror->device_bytes(), most_bytes(index, Form::ranked));
}

// Bytes come beside halves only where memory for searches remains.
TEST(MirrorForm, KeepsHalvesAloneWhereMemoryIsShort)
{
    ThreadPool pool(0);
    constexpr std::size_t dimensions = 101;
    const Index index(Method::graph, Metric::l2, dimensions, cloud(20000, dimensions, Metric::l2),
                      make_list({{"vectors", half}, {"degree", 16}}), pool);
    EXPECT_EQ(load_mirror(index, shared_context())->view().form, TraversalForm::bytes);
    cuda::Context small(0, most_bytes(index, Form::whole) * 8 / 7 + (std::uint64_t{256} << 10));
    const auto mirror = load_mirror(index, small);
    EXPECT_EQ(mirror->view().form, TraversalForm::halves);
    EXPECT_EQ(mirror->view().bytes.rows, nullptr);
    EXPECT_LE(mirror->device_bytes(), most_bytes(index, Form::whole));
}

}  // namespace
}  // namespace pgwarp::test
