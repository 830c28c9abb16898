// Several rungs searched at once: each has the answer of a search of its own, for any following rungs and any number
// of queries in the batch.
#include "protocol/rungs.h"

#include <gtest/gtest.h>

#include "methods_fixture.h"

namespace pgwarp::test::rungs_test
{
namespace
{

constexpr std::size_t dimensions = 20;
constexpr std::size_t queries_together = 64;

struct Case {
    Method method;
    Metric metric;
    std::int64_t vectors;  // of graph
    std::int64_t codes;    // of ivfadc
    std::int64_t refine;
};

class SearchRungs : public testing::TestWithParam<Case>
{
protected:
    // Every fifth row comes three times: equal distances at every rank.
    static std::vector<float> rows_with_copies(Metric metric)
    {
        std::vector<float> rows = random_rows(6000, dimensions, 4);
        const auto row = [&](std::size_t i) { return rows.begin() + static_cast<std::ptrdiff_t>(i * dimensions); };
        for (std::size_t i = 0; i + 5 < 6000; i += 5) {
            std::copy(row(i), row(i + 1), row(i + 1));
            std::copy(row(i), row(i + 1), row(i + 3));
        }
        if (metric == Metric::cosine) normalise_rows(rows, dimensions);
        return rows;
    }
    static RungResults search(const Index& index, std::span<const float> queries, std::span<const SearchRung> rungs,
                              RowBitmap dead, ThreadPool& pool)
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / dimensions;
        batch.k = rungs.back().k;
        batch.effort = rungs.back().effort;
        batch.dead = dead;
        RungResults results;
        index.searcher->search_rungs(batch, rungs, results, pool);
        return results;
    }
    static void expect_same(const std::vector<RowResult>& a, const std::vector<RowResult>& b)
    {
        ASSERT_EQ(ids(a), ids(b));
        for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].distance, b[i].distance);
    }
};

TEST_P(SearchRungs, FindWhatSearchesOfTheirOwnFind)
{
    const auto [method, metric, vectors, codes, refine] = GetParam();
    const ParameterList options =
        method == Method::graph ? make_list({{"vectors", vectors}}) : make_list({{"codes", codes}, {"refine", refine}});
    ThreadPool pool(2);
    const Index index(method, metric, dimensions, rows_with_copies(metric), options, pool);
    std::vector<float> queries = rows_with_copies(metric);
    queries.resize(queries_together * dimensions);
    std::vector<std::uint64_t> dead((6000 + 63) / 64, 0);
    const SearchRung rungs[] = {{7, 10, 0}, {30, 113, 0}, {60, 1128, 0}};
    for (const bool some_dead : {false, true}) {
        for (std::size_t row = 0; some_dead && row < 6000; row += 3) set_bit(dead, row);
        const RungResults all = search(index, queries, rungs, dead, pool);
        for (std::size_t count = 1; count <= 3; ++count) {
            const RungResults some = search(index, queries, std::span(rungs).first(count), dead, pool);
            for (std::size_t q = 0; q < queries_together; q += 7) {
                const auto one = std::span(queries).subspan(q * dimensions, dimensions);
                const RungResults alone = search(index, one, std::span(rungs).first(count), dead, pool);
                for (std::size_t rung = 0; rung < count; ++rung) {
                    expect_same(some[rung][q], all[rung][q]);
                    expect_same(alone[rung][0], all[rung][q]);
                }
            }
        }
        const auto first = index.search(queries, 10, pool, {}, dead, 7);
        for (std::size_t q = 0; q < queries_together; ++q) expect_same(first[q], all[0][q]);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, SearchRungs,
    testing::Values(Case{Method::exact, Metric::l2, 0, 0, 0}, Case{Method::graph, Metric::l2, 0, 0, 0},
                    Case{Method::graph, Metric::inner_product, 0, 0, 0}, Case{Method::graph, Metric::cosine, 1, 0, 0},
                    Case{Method::graph, Metric::l2, 2, 0, 0}, Case{Method::ivfadc, Metric::l2, 0, 0, 0},
                    Case{Method::ivfadc, Metric::l2, 0, 0, 1}, Case{Method::ivfadc, Metric::cosine, 0, 0, 2},
                    Case{Method::ivfadc, Metric::inner_product, 0, 2, 0}));

TEST(Rungs, EndWhereIndexesAreCalibrated)
{
    EXPECT_EQ(rungs_of(1), 1U);
    EXPECT_EQ(rungs_of(10), 1U);
    EXPECT_EQ(rungs_of(11), 2U);
    EXPECT_EQ(rungs_of(100), 2U);
    EXPECT_EQ(rungs_of(101), 3U);
    EXPECT_EQ(rungs_of(65536), 3U);
}

TEST(Rungs, AllowForWhatEarlierOnesHaveMissed)
{
    EXPECT_EQ(recall_before_freezing(0, 0.95), 0.95);
    // Of the first ten rows one in twenty is lost, so of a hundred one in two hundred.
    EXPECT_NEAR(recall_before_freezing(1, 0.95), 0.955, 0.0005);
    EXPECT_LT(recall_before_freezing(2, 0.99), 1);
    EXPECT_EQ(recall_before_freezing(2, 1), 1);
}

}  // namespace
}  // namespace pgwarp::test::rungs_test
