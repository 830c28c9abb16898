// The end of the calibration of pqtree, with a proposer that stands in for an index of many rows.
#include "methods/pqtree/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

namespace pgwarp
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

}  // namespace

}  // namespace pgwarp
