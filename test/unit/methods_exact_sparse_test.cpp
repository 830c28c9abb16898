// The index method exact over sparse vectors: answers compared with the definitions of the distances, in float64.
#include <gtest/gtest.h>

#include "methods/exact/sparse_score.h"
#include "methods_fixture.h"
#include "sparse_fixture.h"

namespace pgwarp::test
{
namespace
{

class ExactSparse : public testing::TestWithParam<Metric>
{
protected:
    Index index_of(const OwnedRows& rows, std::uint64_t universe)
    {
        return Index(Index::shape_of(Method::exact, GetParam(), universe, ElementType::sparse), rows.view(), {}, pool);
    }

    // Searches and continuations by random k and cursors, many of which are distances of rows.
    void expect_right(const Searcher& searcher, const std::vector<Sparse>& vectors, const std::vector<Sparse>& queries,
                      RowBitmap dead, ThreadPool& threads)
    {
        const OwnedRows asked = rows_of_sparse(queries);
        SearchBatch batch;
        batch.lists = asked.view();
        batch.count = queries.size();
        batch.k = random() % 4 == 0 ? 65536 : static_cast<std::uint32_t>(random() % 12);
        batch.dead = dead;
        std::vector<std::vector<RowResult>> results;
        searcher.search(batch, results, threads);
        ASSERT_EQ(results.size(), queries.size());
        for (std::size_t q = 0; q < queries.size(); ++q) {
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, queries[q], dead);
            ASSERT_NO_FATAL_FAILURE(
                expect_equal(results[q], std::span(all).first(std::min<std::size_t>(batch.k, all.size()))));
            ASSERT_NO_FATAL_FAILURE(expect_continuation(searcher, batch, q, all, threads));
        }
    }
    void expect_continuation(const Searcher& searcher, const SearchBatch& batch, std::size_t query,
                             const std::vector<RowResult>& all, ThreadPool& threads)
    {
        RowResult after = {static_cast<double>(random() % 9) - 4, static_cast<std::uint32_t>(random() % 24)};
        if (!all.empty() && random() % 8 != 0) after.distance = all[random() % all.size()].distance;
        std::vector<RowResult> wanted;
        for (const RowResult& row : all)
            if (comes_before(after, row) && wanted.size() < batch.k) wanted.push_back(row);
        SearchBatch one = batch;
        one.lists = batch.lists.row(query);
        one.count = 1;
        std::vector<RowResult> found;
        searcher.search_exact(one, after.distance, after.row, found, threads);
        expect_equal(found, wanted);
    }

    std::mt19937_64 random{static_cast<std::uint64_t>(GetParam())};
    ThreadPool pool{3};
};

// Of few dimensions, which have scores, and of many, which have none.
TEST_P(ExactSparse, RandomVectorsAreAsDefined)
{
    for (int number = 0; number < 600; ++number) {
        const std::uint64_t universe = number % 3 == 0 ? 1000000000 : 1 + random() % 20;
        const bool ties = random() % 2 == 0;
        std::vector<Sparse> vectors(random() % 40);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 40 : 7, universe, ties);
        const OwnedRows rows = rows_of_sparse(vectors);
        const Index index = index_of(rows, universe);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        std::vector<Sparse> queries(1 + random() % 6);
        for (Sparse& query : queries) query = random_sparse(random, 12, universe, ties);
        ASSERT_NO_FATAL_FAILURE(expect_right(*index.searcher, vectors, queries, dead, pool)) << "index " << number;
    }
}

TEST_P(ExactSparse, RowsOfManyBlocksAreAsDefined)
{
    for (const bool ties : {false, true}) {
        std::vector<Sparse> vectors(12000);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 80 : 30, 300, ties);
        const OwnedRows rows = rows_of_sparse(vectors);
        const Index index = index_of(rows, 300);
        std::vector<std::uint64_t> dead((vectors.size() + 63) / 64);
        for (std::uint64_t& word : dead) word = random() & random() & random();
        for (const std::size_t count : {1, 2, 20}) {
            std::vector<Sparse> queries(count);
            for (Sparse& query : queries) query = random_sparse(random, random() % 4 == 0 ? 60 : 8, 300, ties);
            for (ThreadPool* threads : {&pool, &caller_alone()})
                ASSERT_NO_FATAL_FAILURE(expect_right(*index.searcher, vectors, queries, dead, *threads)) << count;
        }
    }
}

TEST_P(ExactSparse, ValuesOfEverySizeAreAsDefined)
{
    for (const float factor : {1e38F, 1e25F, 1e15F, 1e-15F, 1e-25F, 1e-38F, 1e-43F}) {
        std::vector<Sparse> vectors(300);
        for (Sparse& vector : vectors) {
            vector = random_sparse(random, 12, 40, true);
            for (auto& [index, value] : vector) value *= random() % 2 == 0 ? factor : 1;
        }
        const OwnedRows rows = rows_of_sparse(vectors);
        const Index index = index_of(rows, 40);
        for (int i = 0; i < 20; ++i) {
            const std::vector<Sparse> queries = {vectors[random() % 300], random_sparse(random, 12, 40, true)};
            ASSERT_NO_FATAL_FAILURE(expect_right(*index.searcher, vectors, queries, {}, caller_alone())) << factor;
        }
    }
}

// The bounds of scores hold, and pass over nearly all rows that are farther than one of them.
TEST_P(ExactSparse, BoundsOfScoresHoldAndAreNarrow)
{
    std::vector<Sparse> vectors(2000);
    for (Sparse& vector : vectors) vector = random_sparse(random, 40, 100, false);
    vectors[0] = {{1, 1.0F}};
    const OwnedRows rows = rows_of_sparse(vectors);
    const SparseScorer score(GetParam(), sparse_row(rows.view(), 0), 100);
    std::size_t compared = 0;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
        const SparseView row = sparse_row(rows.view(), i);
        const ScoreBounds bounds = score.bounds(row, sparse_size(GetParam(), row));
        const double distance = plain_distance(GetParam(), vectors[0], vectors[i]);
        if (std::isnan(distance)) {
            EXPECT_FALSE(bounds.lower <= HUGE_VAL) << i;
            continue;
        }
        const double scaled = GetParam() == Metric::l2 ? distance * distance : distance;
        EXPECT_EQ(score.scaled(distance), scaled);
        EXPECT_LE(bounds.lower, scaled) << i;
        EXPECT_GE(bounds.upper, scaled) << i;
        EXPECT_LE(bounds.upper - bounds.lower, 1e-8 * (std::fabs(scaled) + 1000)) << i;
        ++compared;
    }
    EXPECT_GT(compared, 1900U);
}

TEST_P(ExactSparse, HoldNothing)
{
    const Index index = index_of(OwnedRows{}, 40);
    const OwnedRows asked = rows_of_sparse({{{3, 1.0F}}});
    SearchBatch batch;
    batch.lists = asked.view();
    batch.count = 1;
    batch.k = 5;
    std::vector<std::vector<RowResult>> results;
    index.searcher->search(batch, results, pool);
    EXPECT_TRUE(results.at(0).empty());
    EXPECT_TRUE(find_description(Method::exact)->complete.has(ElementType::sparse));
}

INSTANTIATE_TEST_SUITE_P(Metrics, ExactSparse, testing::ValuesIn(sparse_metrics),
                         [](const auto& info) { return name_of_metric(info.param); });

}  // namespace
}  // namespace pgwarp::test
