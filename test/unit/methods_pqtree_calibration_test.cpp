// The calibration of pqtree: its end, with a proposer that stands in for an index of many rows, and what it decides.
#include "methods/pqtree/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "methods/pqtree/build_steps.h"
#include "methods_fixture.h"
#include "numeric/sample.h"
#include "protocol/calibration.h"

namespace pgwarp::pqtree_calibration_test
{

namespace
{

constexpr std::size_t many_rows = 10000000;
constexpr std::size_t true_rows = 1000;

// Query q is the number q; its neighbours are the rows from 1,000 q on. Every second of them is proposed, more with
// more candidates: line codes order the others behind all other rows.
class HalfOfAll : public TreeProposer
{
public:
    void propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap,
                 std::vector<std::vector<Candidate>>& proposed, ThreadPool&, const CancelToken*) const override
    {
        most_candidates = std::max(most_candidates, plan.candidates);
        proposed.assign(queries.size(), {});
        const std::size_t found = std::min(true_rows, plan.candidates / 20);
        for (std::size_t q = 0; q < queries.size(); ++q) {
            const auto first = static_cast<std::uint32_t>(queries[q]) * static_cast<std::uint32_t>(true_rows);
            for (std::uint32_t i = 0; i < found; i += 2) proposed[q].push_back({static_cast<float>(i), first + i});
        }
    }
    std::uint64_t memory_bytes() const override { return 0; }

    mutable std::size_t most_candidates = 0;
};

TEST(PqtreeCalibration, EndsWhereLineCodesGainNothing)
{
    std::vector<std::uint32_t> sample(tree_calibration_sample(many_rows));
    std::vector<float> queries;
    std::vector<std::vector<std::uint32_t>> truth(sample.size());
    for (std::uint32_t q = 0; q < sample.size(); ++q) {
        sample[q] = static_cast<std::uint32_t>(many_rows - sample.size()) + q;
        queries.push_back(static_cast<float>(q));
        for (std::uint32_t i = 0; i < true_rows; ++i) truth[q].push_back(q * static_cast<std::uint32_t>(true_rows) + i);
    }
    const CalibrationSample rows{sample, queries, truth};
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    ThreadPool pool(1);
    TreeOptions options = TreeOptions::resolve({}, many_rows, 128);
    options.refine = TreeRefine::none;
    const HalfOfAll proposer;
    const Calibration curve = TreeCalibration{options, proposer, many_rows, rows}.run(progress, pool);
    ASSERT_GT(curve.count, 3U);
    EXPECT_NEAR(curve.points[curve.count - 1].recall[1], 0.5F, 0.02F);
    EXPECT_GT(curve.points[curve.count - 1].effort, 16384);
    EXPECT_LT(proposer.most_candidates, many_rows / 20);

    // Vectors rank all rows in the end.
    options.refine = TreeRefine::half;
    const Calibration ranked = TreeCalibration{options, proposer, many_rows, rows}.run(progress, pool);
    EXPECT_EQ(ranked.points[ranked.count - 1].effort, static_cast<std::int64_t>(many_rows));
    EXPECT_EQ(ranked.points[ranked.count - 1].recall[1], 1.0F);
}

// Line codes order the nearest rows worst: the first twenty lie five places apart among the proposals, others three.
class NearestRowsApart : public TreeProposer
{
public:
    void propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap,
                 std::vector<std::vector<Candidate>>& proposed, ThreadPool&, const CancelToken*) const override
    {
        proposed.assign(queries.size(), {});
        for (std::size_t q = 0; q < queries.size(); ++q) {
            for (std::uint32_t place = 0; place < plan.ranked; ++place)
                proposed[q].push_back({static_cast<float>(place), other_row + place});
            for (std::uint32_t i = 0; i < true_rows; ++i) {
                const std::uint32_t place = i < 20 ? 5 * i : 40 + 3 * i;
                if (place < plan.ranked) proposed[q][place].row = i;
            }
        }
    }
    std::uint64_t memory_bytes() const override { return 0; }

private:
    static constexpr std::uint32_t other_row = many_rows / 2;
};

// Searches for up to 16 rows rank equally many proposals, and those for 16 find the least.
TEST(PqtreeCalibration, PromisesNoMoreThanTheWorstKFinds)
{
    std::vector<std::uint32_t> sample(100);
    std::iota(sample.begin(), sample.end(), static_cast<std::uint32_t>(many_rows - 100));
    const std::vector<float> queries(100);
    std::vector<std::vector<std::uint32_t>> truth(100, std::vector<std::uint32_t>(true_rows));
    for (auto& nearest : truth) std::iota(nearest.begin(), nearest.end(), 0U);
    const CalibrationSample rows{sample, queries, truth};
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    ThreadPool pool(1);
    TreeOptions options = TreeOptions::resolve({}, many_rows, 128);
    for (const auto& [refine, found] : {std::pair{TreeRefine::none, 13.0 / 16}, {TreeRefine::half, 10.0 / 12}}) {
        options.refine = refine;
        const NearestRowsApart proposer;
        const Calibration curve = TreeCalibration{options, proposer, many_rows, rows}.run(progress, pool);
        EXPECT_NEAR(curve.points[0].recall[2], found, 0.01);
    }
}

void give_array(Builder& calibrator, const char* name, ArrayType type, std::uint32_t width,
                std::span<const std::byte> bytes)
{
    const ArrayShape shape = make_array_shape(name, type, bytes.size() / width / array_type_bytes(type), width);
    calibrator.give(shape, 0, bytes);
}

// Measures an index that keeps full vectors anew, as one with another share among its options.
std::unique_ptr<Builder> measure_anew(const test::Index& index, const std::vector<float>& rows, std::int64_t share,
                                      ThreadPool& pool)
{
    ParameterList options = index.builder->effective_options();
    options.set(option_ranked_share, share);
    auto calibrator = find_method(Method::pqtree)->make_calibrator(index.shape, options);
    for (const ArrayShape& array : index.builder->arrays()) {
        if (std::string(array.name) != array_vectors) calibrator->give(array, 0, index.contents(array));
    }
    const std::size_t dimensions = index.shape.dimensions;
    const std::size_t count = rows.size() / dimensions;
    const std::vector<std::uint32_t> sample = sample_rows(count, tree_calibration_sample(count), tree_seed + 2);
    const std::vector<float> queries = gather_rows(rows.data(), dimensions, sample);
    give_array(*calibrator, array_calib_row, ArrayType::u32, 1, std::as_bytes(std::span(sample)));
    give_array(*calibrator, array_calib_query, ArrayType::u8, static_cast<std::uint32_t>(sizeof(float) * dimensions),
               std::as_bytes(std::span(queries)));
    give_array(*calibrator, array_vectors, ArrayType::f32, static_cast<std::uint32_t>(dimensions),
               std::as_bytes(std::span(rows)));
    RowBuffer none(dimensions);
    calibrator->run(none, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    return calibrator;
}

// Rows in clusters of `width`, whose centres are normal.
std::vector<float> rows_around(std::size_t count, std::size_t dimensions, float width)
{
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> centres(60 * dimensions);
    for (float& value : centres) value = normal(random);
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = centres[i / dimensions % 60 * dimensions + i % dimensions] + width * normal(random);
    return rows;
}

// The calibration decides by the present rows whether vectors rank all candidates.
TEST(PqtreeCalibration, ChoosesTheRankedShareAnew)
{
    constexpr std::size_t dimensions = 48;
    constexpr std::size_t count = 12000;
    ThreadPool pool(2);
    for (const float width : {0.005F, 1.0F}) {
        const std::vector<float> rows = rows_around(count, dimensions, width);
        const test::Index index(Method::pqtree, Metric::l2, dimensions, rows, test::make_list({{"refine", 2}}), pool);
        const auto share_of = [](const Builder& builder) {
            return builder.effective_options().get(option_ranked_share, usual_ranked_share);
        };
        const std::int64_t built = share_of(*index.builder);
        EXPECT_EQ(built, width < 1 ? 1 : static_cast<std::int64_t>(usual_ranked_share));
        for (const std::int64_t share : {std::int64_t{1}, static_cast<std::int64_t>(usual_ranked_share)}) {
            const auto anew = measure_anew(index, rows, share, pool);
            EXPECT_EQ(share_of(*anew), built) << "width " << width << ", of an index with " << share;
            const Calibration curve = anew->calibration();
            const Calibration own = index.builder->calibration();
            ASSERT_EQ(curve.count, own.count);
            for (std::uint32_t i = 0; i < curve.count; ++i)
                EXPECT_NEAR(curve.points[i].recall[1], own.points[i].recall[1], 0.03);
        }
        // The usual share is left out, but said where the index has another.
        const ParameterList usual = measure_anew(index, rows, usual_ranked_share, pool)->effective_options();
        EXPECT_EQ(usual.get(option_ranked_share, -1), width < 1 ? 1 : -1);
    }
}

}  // namespace

}  // namespace pgwarp::pqtree_calibration_test
