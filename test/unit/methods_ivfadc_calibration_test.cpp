// The calibration of ivfadc where codes alone rank, with a searcher that stands in for an index of many rows.
#include "methods/ivfadc/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace pgwarp
{

namespace
{

constexpr std::size_t many_rows = 1000000;
constexpr std::size_t queries = 60;
constexpr std::uint32_t true_rows = 1000;

// The neighbours of every query are the first rows. A search finds every second of them, more with more probes: codes
// order the others behind all other rows.
class HalfOfAll : public Searcher
{
public:
    void write(const std::string&, std::uint64_t, std::span<const std::byte>) override {}
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return 0; }
    ResultKind result_kind() const override { return ResultKind::approximate; }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool&) const override
    {
        results.assign(batch.count, {});
        const auto reached = static_cast<std::uint32_t>(std::min<std::int64_t>(true_rows, batch.effort * 20));
        for (std::vector<RowResult>& found : results) {
            for (std::uint32_t row = 0; row < reached && found.size() < batch.k; row += 2)
                found.push_back({static_cast<double>(row), row});
        }
    }
    void search_exact(const SearchBatch&, double, std::uint32_t, std::vector<RowResult>&, ThreadPool&) const override {}
    double search_cost(const SearchBatch&) const override { return 1; }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }
};

TEST(IvfadcCalibration, EndsWhereCodesGainNothing)
{
    std::vector<std::uint32_t> sample(queries);
    std::iota(sample.begin(), sample.end(), static_cast<std::uint32_t>(many_rows - queries));
    std::vector<std::uint32_t> neighbours(true_rows);
    std::iota(neighbours.begin(), neighbours.end(), 0U);
    const std::vector<float> vectors(queries);
    const std::vector<std::vector<std::uint32_t>> truth(queries, neighbours);
    const std::vector<std::uint32_t> list_of_row(many_rows);
    IvfOptions options;
    options.lists = 4000;
    const HalfOfAll searcher;
    const CalibrationSample rows{sample, vectors, truth};
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    ThreadPool pool(1);
    const Calibration curve =
        IvfadcCalibration{options, Metric::l2, {}, list_of_row, rows, &searcher}.run(progress, pool);
    ASSERT_GT(curve.count, 3U);
    const CalibrationPoint& last = curve.points[curve.count - 1];
    EXPECT_NEAR(last.recall[3], 0.5F, 0.01F);
    // 64 lists hold 16,000 rows, fewer than are judged.
    EXPECT_GT(last.effort, 64);
    EXPECT_LT(last.effort, 400);
}

}  // namespace

}  // namespace pgwarp
