// The index method matchcount over sparse vectors: answers compared with the definitions of the distances, in float64.
#include <gtest/gtest.h>

#include "methods/matchcount/sparse_score.h"
#include "methods/matchcount/sparse_search.h"
#include "sparse_fixture.h"

namespace pgwarp::test::matchcount_sparse_test
{
namespace
{

using matchcount::SparseIndex;
using matchcount::SparseQuery;
using matchcount::SparseScore;
// Searches by random k, cursors and bounds, many of which are distances of rows.
void expect_right(const SparseIndex& index, const SparseView& vector, const std::vector<RowResult>& all, RowBitmap dead,
                  std::mt19937_64& random, ThreadPool& pool)
{
    SparseQuery query;
    query.vector = vector;
    query.dead = dead;
    query.k = random() % 4 == 0 ? 65536 : static_cast<std::uint32_t>(random() % 12);
    const auto random_distance = [&] {
        return all.empty() || random() % 8 == 0 ? static_cast<double>(random() % 9) - 4
                                                : all[random() % all.size()].distance + (random() % 8 == 0 ? 0.25 : 0);
    };
    if (random() % 2 == 0) query.after = {random_distance(), static_cast<std::uint32_t>(random() % 24)};
    if (random() % 2 == 0) query.within = random_distance();
    std::vector<RowResult> wanted;
    for (const RowResult& row : all)
        if (comes_before(query.after, row) && row.distance <= query.within && wanted.size() < query.k)
            wanted.push_back(row);
    expect_equal(search_sparse(index, query, pool), wanted);
}

class MatchcountSparse : public testing::TestWithParam<Metric>
{
protected:
    ThreadPool pool{3};
};

TEST_P(MatchcountSparse, RandomVectorsAreAsDefined)
{
    std::mt19937_64 random(1);
    for (int number = 0; number < 600; ++number) {
        const std::uint64_t universe = number % 3 == 0 ? 1000000000 : 1 + random() % 20;
        const bool ties = random() % 2 == 0;
        std::vector<Sparse> vectors(random() % 40);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 40 : 7, universe, ties);
        const OwnedRows rows = rows_of_sparse(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        for (int i = 0; i < 8; ++i) {
            const Sparse query = random_sparse(random, 12, universe, ties);
            const OwnedRows asked = rows_of_sparse({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query, dead);
            for (int j = 0; j < 6; ++j)
                ASSERT_NO_FATAL_FAILURE(
                    expect_right(index, sparse_row(asked.view(), 0), all, dead, random, caller_alone()))
                    << "index " << number;
        }
    }
}

// Many slices, with terms that have columns, on several threads.
TEST_P(MatchcountSparse, RowsOfManySlicesAreAsDefined)
{
    std::mt19937_64 random(2);
    for (const bool ties : {false, true}) {
        std::vector<Sparse> vectors(40000);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 80 : 30, 300, ties);
        const OwnedRows rows = rows_of_sparse(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        ASSERT_NE(index.term(0).column, nullptr);
        ASSERT_EQ(index.term(299).column, nullptr);
        std::vector<std::uint64_t> dead((vectors.size() + 63) / 64);
        for (std::uint64_t& word : dead) word = random() & random() & random();
        for (int i = 0; i < 4; ++i) {
            const Sparse query = random_sparse(random, i % 4 == 0 ? 60 : 8, 300, ties);
            const OwnedRows asked = rows_of_sparse({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query, dead);
            for (int j = 0; j < 4; ++j)
                ASSERT_NO_FATAL_FAILURE(expect_right(index, sparse_row(asked.view(), 0), all, dead, random,
                                                     j % 2 == 0 ? pool : caller_alone()))
                    << "query " << i;
        }
    }
}

// Scores beyond float32, and those that vanish in it.
TEST_P(MatchcountSparse, ValuesOfEverySizeAreAsDefined)
{
    std::mt19937_64 random(3);
    for (const float factor : {1e38F, 1e25F, 1e15F, 1e-15F, 1e-25F, 1e-38F, 1e-43F}) {
        std::vector<Sparse> vectors(300);
        for (Sparse& vector : vectors) {
            vector = random_sparse(random, 12, 40, true);
            for (auto& [index, value] : vector) value *= random() % 2 == 0 ? factor : 1;
        }
        const OwnedRows rows = rows_of_sparse(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        for (int i = 0; i < 20; ++i) {
            const Sparse query = i % 2 == 0 ? vectors[random() % 300] : random_sparse(random, 12, 40, true);
            const OwnedRows asked = rows_of_sparse({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query);
            for (int j = 0; j < 6; ++j)
                ASSERT_NO_FATAL_FAILURE(
                    expect_right(index, sparse_row(asked.view(), 0), all, {}, random, caller_alone()))
                    << factor;
        }
    }
}

// The bound of errors holds, and is not so wide that it proves nothing: few rows are compared.
TEST_P(MatchcountSparse, BoundsOfScoresAreNarrow)
{
    std::mt19937_64 random(4);
    std::vector<Sparse> vectors(3000);
    for (Sparse& vector : vectors) vector = random_sparse(random, 40, 100, false);
    vectors[0] = {{1, 1.0F}};
    const OwnedRows rows = rows_of_sparse(vectors);
    const SparseIndex index(GetParam(), rows.view(), pool);
    const SparseScore score(index, sparse_row(rows.view(), 1));
    ASSERT_TRUE(score.in_range());
    const std::vector<RowResult> all = all_in_order(GetParam(), vectors, vectors[1]);
    const double whole = score.most_score(all.front().distance) - score.most_score(all.back().distance);
    const double width = score.most_score(all.front().distance) - score.least_score(all.front().distance);
    EXPECT_GT(width, 0);
    EXPECT_LT(width, whole / 50);
}

TEST_P(MatchcountSparse, ThreadsMakeTheSameIndex)
{
    std::mt19937_64 random(5);
    std::vector<Sparse> vectors(20000);
    for (Sparse& vector : vectors) vector = random_sparse(random, 80, 3000, false);
    const OwnedRows rows = rows_of_sparse(vectors);
    const SparseIndex one(GetParam(), rows.view(), caller_alone());
    const SparseIndex many(GetParam(), rows.view(), pool);
    std::size_t postings = 0;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        const matchcount::SparseTerm a = one.term(i);
        const matchcount::SparseTerm b = many.term(i);
        postings += a.rows.size();
        ASSERT_TRUE(std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end()));
        ASSERT_TRUE(std::equal(a.values, a.values + a.rows.size(), b.values));
        ASSERT_EQ(a.scale, b.scale);
        for (std::size_t at = 0; at < a.rows.size(); ++at) {
            if (a.column != nullptr) {
                ASSERT_EQ(a.column[a.rows[at]], a.values[at]);
            }
        }
    }
    EXPECT_GT(postings, 600000U);
}

INSTANTIATE_TEST_SUITE_P(Metrics, MatchcountSparse, testing::ValuesIn(sparse_metrics),
                         [](const auto& info) { return name_of_metric(info.param); });

}  // namespace
}  // namespace pgwarp::test::matchcount_sparse_test
