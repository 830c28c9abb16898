// The ivfadc build on the device against the CPU's.
#include <gtest/gtest.h>

#include "cluster_fixture.h"
#include "ivfadc/builder.h"
#include "ivfadc/ivfadc.h"
#include "methods/ivfadc/ivfadc.h"

namespace pgwarp::cuda
{
namespace
{

struct Built {
    std::unique_ptr<Builder> builder;
    std::unique_ptr<RowBuffer> rows;

    template <class T>
    std::vector<T> array(const char* name) const
    {
        for (const ArrayShape& shape : builder->arrays()) {
            if (std::string(shape.name) != name) continue;
            std::vector<T> values(shape.bytes() / sizeof(T));
            builder->read(name, 0, std::as_writable_bytes(std::span(values)));
            return values;
        }
        return {};
    }
};

Built build(bool on_device, const std::vector<float>& values, std::size_t dimensions, Metric metric,
            const ParameterList& options, const CancelToken* cancel = nullptr, Context& on = context())
{
    static ThreadPool pool(0);
    IndexShape shape{};
    shape.method = Method::ivfadc;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(dimensions);
    Built built;
    built.rows = std::make_unique<RowBuffer>(dimensions);
    std::vector<Tid> tids(values.size() / dimensions);
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    built.rows->append(tids, values);
    built.builder = on_device ? make_ivfadc_builder(on, shape, options, make_ivfadc_searcher)
                              : pgwarp::make_ivfadc_builder(shape, options);
    BuildProgress progress;
    progress.report = [](const char*, std::uint64_t, std::uint64_t) {};
    progress.cancel = cancel;
    built.builder->run(*built.rows, progress, pool);
    return built;
}

ParameterList options_of(std::initializer_list<std::pair<const char*, std::int64_t>> items)
{
    ParameterList list;
    for (const auto& [name, value] : items) list.set(name, value);
    return list;
}

void expect_same_shapes(const Built& ours, const Built& cpu)
{
    const auto mine = ours.builder->arrays();
    const auto theirs = cpu.builder->arrays();
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        EXPECT_STREQ(mine[i].name, theirs[i].name);
        EXPECT_EQ(mine[i].type, theirs[i].type);
        EXPECT_EQ(mine[i].rows, theirs[i].rows);
        EXPECT_EQ(mine[i].width, theirs[i].width);
    }
    const ParameterList a = ours.builder->effective_options();
    const ParameterList b = cpu.builder->effective_options();
    ASSERT_EQ(a.count, b.count);
    for (std::uint32_t i = 0; i < a.count; ++i) EXPECT_EQ(a.items[i].value, b.get(a.items[i].name, -1));
}

void expect_same_calibration(const Calibration& ours, const Calibration& cpu)
{
    ASSERT_EQ(ours.count, cpu.count);
    EXPECT_EQ(ours.sample, cpu.sample);
    for (std::uint32_t i = 0; i < ours.count; ++i) {
        EXPECT_EQ(ours.points[i].effort, cpu.points[i].effort);
        for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(ours.points[i].recall[k], cpu.points[i].recall[k], 0.12);
    }
}

TEST(IvfadcBuilder, MakesWhatTheCpuMakes)
{
    struct Case {
        std::size_t dimensions;
        Metric metric;
        ParameterList options;
    };
    const Case cases[] = {
        {24, Metric::l2, options_of({{"lists", 60}})},
        {33, Metric::l2, options_of({{"subquantizers", 5}, {"refine", 2}})},
        {24, Metric::inner_product, options_of({{"lists", 60}, {"codes", 1}})},
        {32, Metric::cosine, options_of({{"lists", 40}, {"opq", 1}})},
        {16, Metric::l2, options_of({{"lists", 50}, {"subquantizers", 8}, {"refine", 0}})},
        {2500, Metric::l2, options_of({{"lists", 10}, {"subquantizers", 250}, {"opq", 1}, {"refine", 0}})},
        {16, Metric::l2, options_of({{"lists", 50}, {"codes", 2}, {"refine", 0}})},
        {33, Metric::cosine, options_of({{"lists", 50}, {"codes", 2}})},
    };
    for (const Case& one : cases) {
        const std::size_t rows = one.dimensions > 1000 ? 1500 : 8000;
        auto values = blob_values(rows, one.dimensions, 200, 61);
        if (one.metric == Metric::cosine) {
            for (std::size_t i = 0; i < rows; ++i) {
                float* row = values.data() + i * one.dimensions;
                const double norm = canonical_norm(row, one.dimensions);
                for (std::size_t d = 0; d < one.dimensions; ++d) row[d] = static_cast<float>(row[d] / norm);
            }
        }
        const Built ours = build(true, values, one.dimensions, one.metric, one.options);
        const Built cpu = build(false, values, one.dimensions, one.metric, one.options);
        expect_same_shapes(ours, cpu);
        expect_same_calibration(ours.builder->calibration(), cpu.builder->calibration());

        const auto centroids = ours.array<float>(array_centroids);
        const auto lists = ours.array<std::uint32_t>(array_list_of_row);
        const Metric coarse = one.metric == Metric::cosine ? Metric::inner_product : Metric::l2;
        expect_nearest(coarse, values, one.dimensions, centroids, lists, 1e-6);
        EXPECT_EQ(ours.array<std::uint16_t>(array_half), cpu.array<std::uint16_t>(array_half));
        EXPECT_EQ(ours.array<float>(array_half_scale), cpu.array<float>(array_half_scale));
        EXPECT_EQ(ours.array<float>(array_vectors), cpu.array<float>(array_vectors));
        EXPECT_EQ(ours.array<std::uint8_t>(array_rotation_signs), cpu.array<std::uint8_t>(array_rotation_signs));

        const Built again = build(true, values, one.dimensions, one.metric, one.options);
        EXPECT_EQ(again.array<std::uint8_t>(array_codes), ours.array<std::uint8_t>(array_codes));
        EXPECT_EQ(again.array<float>(array_centroids), centroids);
    }
}

TEST(IvfadcBuilder, CodesLoseNoMoreThanTheCpus)
{
    const auto values = blob_values(9000, 24, 300, 62);
    double lost[2] = {};
    for (const bool on_device : {false, true}) {
        const Built built = build(on_device, values, 24, Metric::l2, options_of({{"lists", 64}}));
        const auto centroids = built.array<float>(array_centroids);
        const auto lists = built.array<std::uint32_t>(array_list_of_row);
        ProductQuantizer quantizer(24, 6);
        const auto codebooks = built.array<float>(array_codebooks);
        std::copy(codebooks.begin(), codebooks.end(), quantizer.codebooks().begin());
        std::vector<float> residuals(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            residuals[i] = values[i] - centroids[lists[i / 24] * 24 + i % 24];
        lost[on_device] = loss(quantizer, built.array<std::uint8_t>(array_codes), residuals);
    }
    EXPECT_LE(lost[1], lost[0] * 1.02);
}

TEST(IvfadcBuilder, TakesNoneFewAndEqualRows)
{
    for (const std::size_t count : {0, 1, 2, 7, 300}) {
        for (const std::int64_t refine : {0, 1, 2}) {
            const std::vector<float> values(count * 5, 1.5F);
            const ParameterList options = options_of({{"lists", 9}, {"refine", refine}});
            const Built ours = build(true, values, 5, Metric::l2, options);
            const Built cpu = build(false, values, 5, Metric::l2, options);
            expect_same_shapes(ours, cpu);
            for (const std::uint32_t list : ours.array<std::uint32_t>(array_list_of_row)) EXPECT_LT(list, 9U);
        }
    }
}

TEST(IvfadcBuilder, LeavesWhatDoesNotFitToTheCpu)
{
    Context small(0, std::uint64_t{1} << 20);
    const auto values = blob_values(20000, 20, 100, 64);
    const ParameterList options = options_of({{"lists", 30}});
    const Built ours = build(true, values, 20, Metric::l2, options, nullptr, small);
    const Built cpu = build(false, values, 20, Metric::l2, options);
    expect_same_shapes(ours, cpu);
    EXPECT_EQ(ours.array<float>(array_centroids), cpu.array<float>(array_centroids));
    EXPECT_EQ(ours.array<std::uint8_t>(array_codes), cpu.array<std::uint8_t>(array_codes));
    EXPECT_EQ(small.pool().used(), 0U);
}

TEST(IvfadcBuilder, StopsWhenCancelled)
{
    CancelToken token;
    token.cancel();
    EXPECT_THROW(build(true, normal_values(5000 * 8, 63), 8, Metric::l2, {}, &token), Cancelled);
}

}  // namespace
}  // namespace pgwarp::cuda
