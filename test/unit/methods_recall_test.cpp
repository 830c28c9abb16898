// Recall measured by searches, with a searcher whose answers are predictable.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "methods/recall/curve.h"
#include "methods/recall/searches.h"
#include "numeric/sample.h"
#include "protocol/calibration.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t query_count = 60;

// Row r lies at distance r from every query. Of each ten rows a search finds as many as its effort, less `lost`, and no
// more than `most`.
class TenthsSearcher : public Searcher
{
public:
    explicit TenthsSearcher(std::size_t rows, std::int64_t lost = 0, ResultKind kind = ResultKind::exact,
                            std::int64_t most = 10)
        : rows_(rows), lost_(lost), kind_(kind), most_(most)
    {
    }
    void write(const std::string&, std::uint64_t, std::span<const std::byte>) override {}
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return 0; }
    ResultKind result_kind() const override { return kind_; }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool&) const override
    {
        results.assign(batch.count, {});
        for (std::vector<RowResult>& found : results) {
            for (std::uint32_t row = 0; row < rows_ && found.size() < batch.k; ++row) {
                if (static_cast<std::int64_t>(row % 10) < std::min(batch.effort - lost_, most_) &&
                    !bit_is_set(batch.dead, row))
                    found.push_back({static_cast<double>(row), row});
            }
        }
        searches_.insert({batch.effort, batch.k});
        largest_query_ = *std::max_element(batch.queries.begin(), batch.queries.begin() + std::ptrdiff_t(batch.count));
    }
    void search_exact(const SearchBatch&, double, std::uint32_t, std::vector<RowResult>&, ThreadPool&) const override {}
    double search_cost(const SearchBatch&) const override { return 1; }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    mutable std::multiset<std::pair<std::int64_t, std::uint32_t>> searches_;  // effort and k
    mutable float largest_query_ = 0;                                         // of the last search

private:
    std::size_t rows_;
    std::int64_t lost_;
    ResultKind kind_;
    std::int64_t most_;
};

// The neighbours of each query: the first live rows.
std::vector<std::vector<std::uint32_t>> first_rows(std::size_t rows, RowBitmap dead = {})
{
    std::vector<std::uint32_t> first;
    for (std::uint32_t row = 0; row < rows && first.size() < 1000; ++row)
        if (!bit_is_set(dead, row)) first.push_back(row);
    return std::vector<std::vector<std::uint32_t>>(query_count, first);
}

const BuildProgress quiet{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};

TEST(Recall, IsTheShareOfTheNeighboursThatAreFound)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(5000);
    const std::vector<float> queries(query_count);
    const auto truth = first_rows(5000);
    const RecallInput input{.searcher = searcher, .rows = 5000, .queries = queries, .truth = truth};
    const Calibration curve = measure_recall(input, {.efforts = {1, 5, 10, 11}}, quiet, pool);
    // The first effort that finds all rows is the last one measured.
    ASSERT_EQ(curve.count, 3U);
    EXPECT_EQ(curve.sample, query_count);
    const double expected[] = {0.1, 0.5, 1};
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(curve.points[i].recall[0], 1);
        for (std::size_t k = 1; k < 4; ++k) EXPECT_NEAR(curve.points[i].recall[k], expected[i], 0.02) << i << " " << k;
    }
}

// A query that is a row of the index finds itself, which does not count.
TEST(Recall, OwnRowsDoNotCount)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(500);
    const std::vector<float> queries(query_count);
    auto truth = first_rows(500);
    for (auto& neighbours : truth) neighbours.erase(neighbours.begin());
    const std::vector<std::uint32_t> own(query_count, 0);
    const RecallInput input{.searcher = searcher, .rows = 499, .queries = queries, .truth = truth, .own_rows = own};
    const Calibration curve = measure_recall(input, {.efforts = {1, 10}}, quiet, pool);
    ASSERT_EQ(curve.count, 2U);
    EXPECT_EQ(curve.points[0].recall[0], 0);
    EXPECT_EQ(curve.points[1].recall[0], 1);
    EXPECT_EQ(curve.points[1].recall[2], 1);
}

// Codes alone never find the last of ten rows, whatever the effort.
TEST(Recall, EndsWhereCodesGainNothing)
{
    ThreadPool pool(1);
    const std::vector<float> queries(query_count);
    const auto truth = first_rows(5000);
    std::vector<std::int64_t> efforts(30);
    std::iota(efforts.begin(), efforts.end(), 1);
    const auto last_effort = [&](ResultKind kind, std::int64_t gains_from) {
        const TenthsSearcher searcher(5000, 0, kind, 9);
        const RecallInput input{.searcher = searcher, .rows = 5000, .queries = queries, .truth = truth};
        const Calibration curve = measure_recall(input, {.efforts = efforts, .gains_from = gains_from}, quiet, pool);
        EXPECT_NEAR(curve.points[curve.count - 1].recall[2], 0.9, 0.02);
        return curve.points[curve.count - 1].effort;
    };
    EXPECT_EQ(last_effort(ResultKind::approximate, 1), 12);
    EXPECT_EQ(last_effort(ResultKind::approximate, 15), 18);
    EXPECT_EQ(last_effort(ResultKind::approximate, 0), 30);
    // Exact distances find more in the end.
    EXPECT_EQ(last_effort(ResultKind::exact, 1), 30);
}

// Where the effort is a width, a search keeps no fewer rows than it returns, and is the same for all smaller efforts.
TEST(Recall, NarrowSearchesAreMadeOnce)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(5000, 2);
    const std::vector<float> queries(query_count);
    const auto truth = first_rows(5000);
    const RecallInput input{.searcher = searcher, .rows = 5000, .queries = queries, .truth = truth};
    const RecallRules rules{.efforts = {1, 2, 3}, .steps_of_k = 1, .effort_is_width = true};
    const Calibration curve = measure_recall(input, rules, quiet, pool);
    ASSERT_EQ(curve.count, 3U);
    EXPECT_EQ(curve.points[1].recall[0], 0);
    EXPECT_EQ(curve.points[2].recall[0], 1);
    // Of two rows one is found with the effort 3, none with less; of ten, eight by a search that keeps ten.
    EXPECT_EQ(curve.points[1].recall[1], 0);
    EXPECT_EQ(curve.points[2].recall[1], 0.5);
    EXPECT_EQ(curve.points[0].recall[3], 1);
    EXPECT_EQ(searcher.searches_.count({1000, 1000}), 1U);
    EXPECT_EQ(searcher.searches_.count({10, 10}), 1U);
}

// The search of a width serves the effort near it.
TEST(Recall, EffortsNearAWidthMoveToIt)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(5000, 2);
    const std::vector<float> queries(query_count);
    const auto truth = first_rows(5000);
    const RecallInput input{.searcher = searcher, .rows = 5000, .queries = queries, .truth = truth};
    const RecallRules rules{.efforts = {3, 5, 9, 12, 20}, .steps_of_k = 1, .effort_is_width = true};
    const Calibration curve = measure_recall(input, rules, quiet, pool);
    ASSERT_EQ(curve.count, 5U);
    EXPECT_EQ(curve.points[1].effort, 5);
    EXPECT_EQ(curve.points[2].effort, 10);
    EXPECT_EQ(curve.points[3].effort, 11);
    EXPECT_EQ(curve.points[4].effort, 20);
    EXPECT_EQ(searcher.searches_.count({10, 10}), 1U);
}

// Queries ascend by row, and a table's first rows may differ from the others.
TEST(Recall, FewQueriesAreSpreadOverTheSample)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(5000, 2);
    std::vector<float> queries(query_count);
    std::iota(queries.begin(), queries.end(), 0.0F);
    const auto truth = first_rows(5000);
    const RecallInput input{.searcher = searcher, .rows = 5000, .queries = queries, .truth = truth};
    measure_recall(input, {.efforts = {4096}, .effort_is_width = true}, quiet, pool);
    EXPECT_GE(searcher.largest_query_, 50);
}

// Of 100 queries the first 20 are easy. Measured alone at a larger effort, they tell the gain, not the recall of all.
TEST(RecallCurve, FewerQueriesTellTheGain)
{
    RecallCurve curve(100);
    RecallCurve::Shares shares(100, {0.6F, 0.6F, 0.6F, -1});
    const auto easy = [](std::size_t q) { return q % 2 == 0 ? 0.85F : 0.95F; };
    for (std::size_t q = 0; q < 20; ++q) shares[q] = {easy(q), easy(q), easy(q), -1};
    curve.add(10, shares);
    const float before = curve.calibration().points[0].recall[0];
    EXPECT_LT(before, 0.66);
    std::fill(shares.begin(), shares.end(), std::array{-1.0F, -1.0F, -1.0F, -1.0F});
    for (std::size_t q = 0; q < 20; ++q) shares[q] = {easy(q), easy(q) + 0.05F, easy(q) - 0.1F, -1};
    curve.add(20, shares);
    const CalibrationPoint point = curve.calibration().points[1];
    EXPECT_NEAR(point.recall[0], before, 1e-6);
    EXPECT_NEAR(point.recall[1], before + 0.05, 1e-6);
    EXPECT_NEAR(point.recall[2], before, 1e-6);
    EXPECT_EQ(point.recall[3], -1);
}

// The rows that can be found decide which k are measured, not those that are dead.
TEST(Recall, DeadRowsAreNotFound)
{
    ThreadPool pool(1);
    const TenthsSearcher searcher(5000);
    std::vector<std::uint64_t> dead((5000 + 63) / 64, ~std::uint64_t{0});
    dead[0] = 0;  // 64 rows live
    const std::vector<float> queries(query_count);
    const auto truth = first_rows(5000, dead);
    const RecallInput input{.searcher = searcher, .rows = 64, .queries = queries, .truth = truth, .dead = dead};
    const Calibration curve = measure_recall(input, {.efforts = {10}}, quiet, pool);
    ASSERT_EQ(curve.count, 1U);
    EXPECT_EQ(curve.points[0].recall[2], 1);
    EXPECT_LT(curve.points[0].recall[3], 0);
}

// A hundred queries that all found their nearest row prove a recall of .97 only.
TEST(Recall, PromisesNoMoreThanAFewQueriesTell)
{
    RecallCurve curve(100, true);
    curve.add(1, std::vector<std::array<float, 4>>(100, {1, 0.5F, -1, -1}));
    curve.add(2, std::vector<std::array<float, 4>>(100, {1, 1, -1, -1}));
    curve.add_complete(3, std::vector<std::array<float, 4>>(100, {1, 1, -1, -1}));
    const Calibration calibration = curve.calibration();
    EXPECT_NEAR(calibration.points[0].recall[0], 0.97, 0.01);
    EXPECT_LE(calibration.points[0].recall[1], 0.5);
    // Ten neighbours for each query narrow the interval.
    EXPECT_NEAR(calibration.points[1].recall[1], 0.997, 0.001);
    EXPECT_EQ(calibration.points[1].recall[0], calibration.points[1].recall[1]);
    EXPECT_EQ(calibration.points[2].recall[0], 1);
    EXPECT_LT(calibration.points[2].recall[2], 0);
}

TEST(Recall, TakesTheEffortThatComesNearestWhereNoneSuffices)
{
    Calibration calibration{};
    for (const float recall : {0.5F, 0.8F, 0.8F, 0.8F}) {
        CalibrationPoint& point = calibration.points[calibration.count++];
        point.effort = 8 << calibration.count;
        std::fill(std::begin(point.recall), std::end(point.recall), recall);
    }
    EXPECT_EQ(choose_effort(calibration, 10, 0.7).effort, 32);
    EXPECT_TRUE(choose_effort(calibration, 10, 0.7).reached);
    EXPECT_EQ(choose_effort(calibration, 10, 0.9).effort, 32);
    EXPECT_FALSE(choose_effort(calibration, 10, 0.9).reached);
}

}  // namespace
}  // namespace pgwarp::test
