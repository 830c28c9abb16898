// The traversal kernels against the same traversal on the CPU. Rows and queries are small integers, whose scores are
// exact in any order of additions, so the answers must be equal row by row.
#include "graph/traverse.h"

#include <cuda_fp16.h>

#include <bit>
#include <random>

#include "device/error.h"
#include "graph/mirror.h"
#include "graph/seeds.h"
#include "graph_fixture.h"
#include "host_group.h"
#include "methods/arrays.h"
#include "methods/graph/graph.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/rows/byte_lists.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda::graph;

constexpr std::uint32_t row_count = 4000;
constexpr std::uint32_t degree = 16;
constexpr std::uint32_t seed_rows = 150;
constexpr std::uint32_t query_count = 37;

struct Kind {
    Metric metric;
    std::size_t dimensions;
    std::size_t bits;  // 0: halves
};

class Traversed : public testing::TestWithParam<Kind>
{
protected:
    void SetUp() override
    {
        std::mt19937 random(7);
        const Kind kind = GetParam();
        rows.resize(row_count * kind.dimensions);
        queries.resize(query_count * kind.dimensions);
        for (float& value : rows) value = static_cast<float>(random() % 41) - 20;
        for (float& value : queries) value = static_cast<float>(random() % 41) - 20;
        words = static_cast<std::uint32_t>(kind.bits / 32);
        for (std::uint32_t i = 0; i < row_count * words; ++i) row_bits.push_back(random());
        for (std::uint32_t i = 0; i < query_count * words; ++i) query_bits.push_back(random());
        neighbours.assign(row_count * degree, no_neighbour);
        for (std::uint32_t row = 0; row < row_count; ++row) {
            std::set<std::uint32_t> to;
            while (to.size() < degree - row % 4) to.insert(random() % row_count);
            to.erase(row);
            std::copy(to.begin(), to.end(), neighbours.begin() + row * degree);
        }
        while (seeds.size() < seed_rows) seeds.push_back(random() % row_count);
        for (const std::uint32_t row : seeds) {
            if (std::find(distinct.begin(), distinct.end(), row) == distinct.end()) distinct.push_back(row);
        }
        for (std::uint32_t i = 0; i < query_count * seed_rows; ++i) starts.push_back(random() % row_count);
        load();
    }

    // The index as it would be stored.
    void load()
    {
        const Kind kind = GetParam();
        IndexShape shape{};
        shape.method = Method::graph;
        shape.element = ElementType::float32;
        shape.metric = static_cast<std::uint8_t>(kind.metric);
        shape.dimensions = static_cast<std::uint32_t>(kind.dimensions);
        std::vector<std::pair<ArrayShape, std::vector<std::byte>>> arrays;
        const auto add = [&](const char* name, ArrayType type, std::uint64_t count, std::uint64_t width,
                             const void* from) {
            const ArrayShape array = make_array_shape(name, type, count, width);
            const auto* bytes = static_cast<const std::byte*>(from);
            arrays.emplace_back(array, std::vector<std::byte>(bytes, bytes + array.bytes()));
        };
        const std::vector<float> mean(kind.dimensions, 0.0F);
        const float scale[2] = {1, 0};
        const std::vector<float> projection(kind.bits * (kind.dimensions + 1), 0.5F);
        std::vector<__half> halves(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) halves[i] = __float2half(rows[i]);
        add(array_seeds, ArrayType::u32, seed_rows, 1, seeds.data());
        if (words > 0) {
            add(array_projection, ArrayType::f32, kind.bits, kind.dimensions + 1, projection.data());
        } else {
            add(array_half_mean, ArrayType::f32, 1, kind.dimensions, mean.data());
            add(array_half_scale, ArrayType::f32, 1, 2, scale);
        }
        add(array_neighbours, ArrayType::u32, row_count, degree, neighbours.data());
        if (words > 0) {
            add(array_bits, ArrayType::u32, row_count, words, row_bits.data());
        } else {
            add(array_half, ArrayType::f16, row_count, kind.dimensions, halves.data());
        }
        const ParameterList options =
            make_list({{"degree", degree}, {"vectors", words > 0 ? 2 : 1}, {"bits", static_cast<int>(kind.bits)}});
        std::vector<ArrayShape> shapes;
        for (const auto& [array, bytes] : arrays) shapes.push_back(array);
        mirror = std::make_unique<Mirror>(shared_context(), shape, options, shapes);
        for (const auto& [array, bytes] : arrays) {
            for (std::size_t at = 0; at < bytes.size(); at += 777) {
                mirror->write(array.name, at,
                              std::span(bytes).subspan(at, std::min<std::size_t>(777, bytes.size() - at)));
            }
        }
        mirror->finish_load();
        read_bytes();
    }

    // Reads the mirror's bytes of the rows, and makes the CPU's bytes of the queries.
    void read_bytes()
    {
        const GraphView& view = mirror->view();
        if (view.form != TraversalForm::bytes) return;
        byte_rows.resize(row_count * view.bytes.stride);
        byte_terms.resize(row_count);
        cuda::check(cudaMemcpy(byte_rows.data(), view.bytes.rows, byte_rows.size(), cudaMemcpyDeviceToHost), "test");
        cuda::check(cudaMemcpy(byte_terms.data(), view.bytes.terms, row_count * sizeof(float2), cudaMemcpyDeviceToHost),
                    "test");
        std::vector<float> mean(GetParam().dimensions, 0.0F);
        if (view.bytes.mean != nullptr) {
            cuda::check(cudaMemcpy(mean.data(), view.bytes.mean, mean.size() * sizeof(float), cudaMemcpyDeviceToHost),
                        "test");
        }
        byte_queries.resize(query_count);
        for (std::uint32_t i = 0; i < query_count; ++i) {
            byte_queries[i].assign(queries.data() + i * GetParam().dimensions, mean.data(), GetParam().dimensions);
        }
    }
    float byte_score(std::uint32_t query, std::uint32_t row) const
    {
        const ByteQuery& asked = byte_queries[query];
        const std::size_t stride = mirror->view().bytes.stride;
        int product = 0;
        for (std::size_t d = 0; d < GetParam().dimensions; ++d)
            product += byte_rows[row * stride + d] * asked.values[d];
        const float factor = (GetParam().metric == Metric::l2 ? -2.0F : -1.0F) * asked.step;
        const float scale = factor * byte_terms[row].x;
        const float share = scale * static_cast<float>(product);
        return byte_terms[row].y + share;
    }

    float score(std::uint32_t query, std::uint32_t row) const
    {
        const Kind kind = GetParam();
        if (words > 0) {
            int differing = 0;
            for (std::uint32_t i = 0; i < words; ++i) {
                differing += std::popcount(row_bits[row * words + i] ^ query_bits[query * words + i]);
            }
            return static_cast<float>(differing);
        }
        if (!byte_rows.empty()) return byte_score(query, row);
        double product = 0;
        double square = 0;
        double sum = 0;
        for (std::size_t d = 0; d < kind.dimensions; ++d) {
            const double a = queries[query * kind.dimensions + d];
            const double b = rows[row * kind.dimensions + d];
            product += a * b;
            square += b * b;
            sum += std::fabs(a - b);
        }
        if (kind.metric == Metric::l1) return static_cast<float>(sum);
        return static_cast<float>(kind.metric == Metric::l2 ? square - 2 * product : -product);
    }

    std::vector<std::uint32_t> on_cpu(const LaunchConfig& shape, std::uint32_t query, RowBitmap dead) const
    {
        const TraversalShape& traversal = shape.traversal;
        std::vector<std::uint32_t> visited(visited_words(16));
        const HostGroup group(0, 1, nullptr);
        const auto scores = [&](const std::uint32_t* from, std::uint32_t count, const auto& take) {
            for (std::uint32_t i = 0; i < count; ++i) take(i, make_entry(score(query, from[i]), from[i]));
        };
        const HostMemory memory(traversal);
        VisitedHash<HostGroup> known(group, visited.data(), 16);
        known.clear();
        Traversal<HostGroup, HostMemory, VisitedHash<HostGroup>, decltype(scores)> search(
            group, traversal, memory, known, scores, neighbours.data());
        const bool looks = shape.offered == 0;
        search.run({looks ? distinct.data() : starts.data() + query * shape.offered,
                    looks ? shape.seeds : shape.offered, shape.starts, seeds[0], !looks, looks});
        const Entry* entries = search.found();
        std::vector<std::uint32_t> found;
        for (std::uint32_t i = 0; i < traversal.ef && found.size() < shape.wanted; ++i) {
            if (entries[i] != no_entry && !bit_is_set(dead, row_of(entries[i]))) found.push_back(row_of(entries[i]));
        }
        return found;
    }

    template <class T>
    cuda::DeviceArray<T> copy_in(std::span<const T> values, const cuda::Context::Lease& stream) const
    {
        cuda::DeviceArray<T> copy(shared_context().pool(), values.size(), "test", stream);
        cuda::check(cudaMemcpyAsync(copy.data(), values.data(), copy.bytes(), cudaMemcpyHostToDevice, stream), "test");
        return copy;
    }

    void expect_equal(const ParameterList& settings, std::size_t ef, bool with_dead, const std::string& what)
    {
        const auto stream = shared_context().lease(cuda::Priority::search);
        LaunchConfig shape = launch_config(settings, ef, 25, query_count, mirror->limits());
        shape.launch_queries = 16;  // several launches
        shape.ranks = false;        // the test reads the rows found, in the order of scores
        const std::vector<std::uint64_t> dead(with_dead ? (row_count + 63) / 64 : 0, 0x00ff0f0f33335555ULL);
        const auto floats = copy_in(std::span<const float>(queries), stream);
        const auto bits = copy_in(std::span<const std::uint32_t>(query_bits), stream);
        const auto from = copy_in(std::span<const std::uint32_t>(starts), stream);
        const auto dead_bits = copy_in(std::span<const std::uint64_t>(dead), stream);
        cuda::DeviceArray<std::uint32_t> out(shared_context().pool(), query_count * shape.wanted, "test", stream);
        cuda::DeviceArray<std::uint32_t> counts(shared_context().pool(), query_count, "test", stream);
        TraverseJob job;
        job.view = &mirror->view();
        job.shape = shape;
        job.queries = floats.data();
        job.query_bits = bits.data();
        job.starts = from.data();
        job.repeated_starts = true;
        job.dead = reinterpret_cast<const std::uint32_t*>(dead_bits.data());
        job.count = query_count;
        job.rows = out.data();
        job.found = counts.data();
        traverse(job, stream);
        std::vector<std::uint32_t> rows_found(out.size());
        std::vector<std::uint32_t> found(query_count);
        cuda::check(cudaMemcpyAsync(rows_found.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, stream),
                    "test");
        cuda::check(cudaMemcpyAsync(found.data(), counts.data(), counts.bytes(), cudaMemcpyDeviceToHost, stream),
                    "test");
        stream.stream().synchronize();
        std::size_t different = 0;
        for (std::uint32_t query = 0; query < query_count; ++query) {
            const std::uint32_t* begin = rows_found.data() + query * shape.wanted;
            const std::vector<std::uint32_t> own(begin, begin + std::min(found[query], shape.wanted));
            different += own == on_cpu(shape, query, dead) ? 0 : 1;
        }
        EXPECT_EQ(different, 0U) << what << ", ef " << ef;
    }

    std::vector<float> rows;
    std::vector<float> queries;
    std::uint32_t words = 0;
    std::vector<std::uint32_t> row_bits;
    std::vector<std::uint32_t> query_bits;
    std::vector<std::uint32_t> neighbours;
    std::vector<std::uint32_t> seeds;
    std::vector<std::uint32_t> distinct;  // seeds without repeats, as the mirror has them
    std::vector<std::uint32_t> starts;
    std::vector<std::int8_t> byte_rows;
    std::vector<float2> byte_terms;
    std::vector<ByteQuery> byte_queries;
    std::unique_ptr<Mirror> mirror;
};

TEST_P(Traversed, FindsWhatTheCpuFinds)
{
    for (const std::size_t ef : {1, 25, 70, 300}) {
        for (const bool dead : {false, true}) {
            expect_equal({}, ef, dead, dead ? "default, dead rows" : "default");
        }
    }
    for (const std::int64_t routes : {1, 2}) {
        for (const std::int64_t cluster : {1, 2}) {
            const ParameterList settings = make_list({{"routes", routes}, {"cluster", cluster}, {"starts", 5}});
            expect_equal(settings, 40, false, "routes " + std::to_string(routes));
            expect_equal(settings, 3, false, "routes " + std::to_string(routes));
        }
    }
    for (const std::int64_t lanes : {8, 16, 32, 64, 256, 512}) {
        for (const std::int64_t team : {4, 8, 32}) {
            for (const std::int64_t steps : {1, 5, 20}) {
                expect_equal(make_list({{"lanes", lanes}, {"team", team}, {"multi_step", steps}}), 40, false,
                             "lanes " + std::to_string(lanes) + " team " + std::to_string(team) + " steps " +
                                 std::to_string(steps));
            }
        }
    }
    for (const std::int64_t cluster : {2, 4, 8}) {
        for (const std::int64_t help : {1, 2}) {
            for (const std::size_t ef : {1, 40, 300}) {
                for (const std::int64_t routes : {1, 2}) {
                    expect_equal(make_list({{"cluster", cluster}, {"help", help}, {"routes", routes}}), ef,
                                 cluster == 4, "cluster " + std::to_string(cluster) + " help " + std::to_string(help));
                }
            }
            for (const std::int64_t visited_bits : {5, 7, 12}) {
                const ParameterList settings = make_list(
                    {{"cluster", cluster}, {"help", help}, {"visited_bits", visited_bits}, {"multi_step", 32}});
                expect_equal(settings, 200, false, "cluster, visited bits " + std::to_string(visited_bits));
            }
            const ParameterList settings = make_list({{"cluster", cluster}, {"help", help}, {"lanes", 64}});
            expect_equal(settings, 40, false, "cluster, lanes 64");
        }
    }
    for (const std::int64_t visited_bits : {5, 7, 12}) {
        expect_equal(make_list({{"visited_bits", visited_bits}}), 60, false,
                     "visited bits " + std::to_string(visited_bits));
    }
    expect_equal(make_list({{"selected_insertion", 1}}), 50, false, "selected insertion");
    expect_equal(make_list({{"visited_deletion", 1}, {"visited_bits", 7}}), 50, true, "deletion");
    expect_equal(make_list({{"unbounded_queue", 1}}), 50, false, "unbounded queue");
    expect_equal(make_list({{"multi_query", 4}}), 50, false, "several queries a warp");
    expect_equal(make_list({{"starts", 24}}), 3, false, "more starts than places");
}

INSTANTIATE_TEST_SUITE_P(DeviceGraph, Traversed,
                         testing::Values(Kind{Metric::l2, 24, 0}, Kind{Metric::l2, 131, 0}, Kind{Metric::l2, 1, 0},
                                         Kind{Metric::inner_product, 64, 0}, Kind{Metric::l1, 40, 0},
                                         Kind{Metric::l2, 8, 128}, Kind{Metric::l2, 8, 96}));

// Starts by exact scores: the nearest seeds, ties by their place.
TEST_P(Traversed, BeginsAtTheNearestSeeds)
{
    if (words > 0) GTEST_SKIP() << "queries are projected there";
    const auto stream = shared_context().lease(cuda::Priority::search);
    const LaunchConfig shape =
        launch_config(make_list({{"starts", 9}, {"routes", 1}}), 40, 10, query_count, mirror->limits());
    const auto asked = copy_in(std::span<const float>(queries), stream);
    // The halves that prepare_queries() of cuda/rows makes from integers, up to a power of two.
    const std::uint32_t stride = mirror->view().vectors.stride;
    std::vector<__half> halves(query_count * stride, __float2half(0));
    for (std::uint32_t q = 0; q < query_count; ++q) {
        for (std::size_t d = 0; d < GetParam().dimensions; ++d) {
            halves[q * stride + d] = __float2half(queries[q * GetParam().dimensions + d]);
        }
    }
    const bool squared = GetParam().metric != Metric::inner_product;
    const std::vector<float> multipliers(query_count, squared ? 2.0F : 1.0F);
    const auto device_halves = copy_in(std::span<const __half>(halves), stream);
    const auto device_multipliers = copy_in(std::span<const float>(multipliers), stream);
    cuda::MemoryPool& pool = shared_context().pool();
    cuda::DeviceArray<float> scores(pool, query_count * seed_stride(shape), "test", stream);
    cuda::DeviceArray<float> values(pool, query_count * shape.offered, "test", stream);
    cuda::DeviceArray<std::uint32_t> columns(pool, query_count * shape.offered, "test", stream);
    cuda::DeviceArray<std::byte> select(pool, select_bytes(shape, query_count) + 1, "test", stream);
    cuda::DeviceArray<std::uint32_t> out(pool, query_count * shape.offered, "test", stream);
    const cuda::rows::QueryView view{asked.data(), asked.data(), device_halves.data(), device_multipliers.data(),
                                     nullptr};
    choose_starts(mirror->view(), shape, view, query_count,
                  {scores.data(), values.data(), columns.data(), select.data()},
                  static_cast<std::uint32_t>(shared_context().shared_bytes_per_block()), out.data(), stream);
    std::vector<std::uint32_t> found(out.size());
    cuda::check(cudaMemcpyAsync(found.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, stream), "test");
    stream.stream().synchronize();
    for (std::uint32_t q = 0; q < query_count; ++q) {
        std::vector<std::pair<double, std::uint32_t>> all;
        for (std::uint32_t i = 0; i < distinct.size(); ++i) {
            double product = 0;
            double square = 0;
            for (std::size_t d = 0; d < GetParam().dimensions; ++d) {
                const double b = rows[distinct[i] * GetParam().dimensions + d];
                product += queries[q * GetParam().dimensions + d] * b;
                square += b * b;
            }
            all.emplace_back(squared ? square - 2 * product : -product, i);
        }
        std::sort(all.begin(), all.end());
        for (std::uint32_t i = 0; i < shape.offered; ++i) {
            EXPECT_EQ(found[q * shape.offered + i], distinct[all[i].second]) << q << ' ' << i;
        }
    }
}

}  // namespace
}  // namespace pgwarp::test
