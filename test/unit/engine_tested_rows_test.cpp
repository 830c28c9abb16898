// Searches with predicates by searchers that test all rows, so that no lists of the rows that pass are made.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/search/filter_ways.h"
#include "filtered_kinds.h"
#include "forwarding_searcher.h"
#include "methods/tested_rows.h"

namespace pgwarp
{
namespace
{

using namespace test;

std::atomic<std::size_t> tested;

class TestingSearcher : public ForwardingSearcher, public TestsAllRows
{
public:
    TestingSearcher(std::unique_ptr<Searcher> searcher, std::size_t rows)
        : ForwardingSearcher(std::move(searcher)), rows_(rows)
    {
    }
    bool compares_certain_rows() const override { return true; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        results.resize(batch.count);
        for (std::size_t q = 0; q < batch.count; ++q) {
            std::vector<std::uint64_t> others((rows_ + 63) / 64, ~std::uint64_t{0});
            for (const std::uint32_t row : rows[q])
                if (!bit_is_set(batch.dead, row)) others[row / 64] &= ~(std::uint64_t{1} << row % 64);
            SearchBatch one = batch;
            one.count = 1;
            one.queries = batch.queries.subspan(q * filtered_dimensions, filtered_dimensions);
            one.dead = others;
            one.filters = {};
            one.dead_version = 0;
            search_exact(one, after.distance, after.row, results[q], pool);
        }
    }
    bool tests_all_rows(std::uint32_t k) const override { return k < 100; }
    void search_passing(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                        ThreadPool& pool) const override
    {
        tested += batch.count;
        std::vector<std::vector<std::uint32_t>> passing(batch.count);
        std::vector<RowList> lists;
        for (std::size_t q = 0; q < batch.count; ++q) {
            for (std::uint32_t row = 0; row < rows_; ++row)
                if (batch.filters[q].passes(row)) passing[q].push_back(row);
            lists.emplace_back(passing[q]);
        }
        search_among(batch, lists, before_all, results, pool);
    }

private:
    std::size_t rows_;
};

template <class Searching>
std::unique_ptr<Searcher> make_testing(const IndexShape& shape, const ParameterList& options,
                                       std::span<const ArrayShape> arrays)
{
    std::size_t rows = 0;
    for (const ArrayShape& array : arrays) rows = std::max<std::size_t>(rows, array.rows);
    return std::make_unique<Searching>(find_method(shape.method)->make_searcher(shape, options, arrays), rows);
}

class TestedRows : public FilteredSearchTest
{
protected:
    TestedRows() : method_(*find_method(GetParam().method))
    {
        method_.make_searcher = &make_testing<TestingSearcher>;
        tested = 0;
    }

    MethodFactory method_;
};

TEST_P(TestedRows, FindWhatPasses)
{
    expect_what_passes(&method_);
    EXPECT_GT(tested, 0U);
}

TEST_P(TestedRows, HoldForEveryPassRate)
{
    expect_every_pass_rate(&method_);
    EXPECT_GT(tested, 0U);
}

TEST_P(TestedRows, AreTheSameInEveryBatch)
{
    expect_same_in_every_batch(&method_);
    EXPECT_GT(tested, 0U);
}

// Continuations have lists.
TEST_P(TestedRows, GoOnToTheLastRow)
{
    expect_every_row(&method_);
}

// One that finds all rows in any way, and whose tests share work.
class SharingSearcher : public TestingSearcher
{
public:
    using TestingSearcher::TestingSearcher;
    bool finds_all() const override { return true; }
    double filtered_cost(const SearchBatch&, double) const override { return 1000; }
    double shared_cost(std::size_t queries) const override { return 2e5 / static_cast<double>(queries); }
};

// A bitmap for the queries of one predicate costs less than a comparison for each, but not than one for all together.
TEST(SharedTests, CostLessInLargeBatches)
{
    constexpr std::size_t rows = 2000;
    MethodFactory method = *find_method(Method::exact);
    method.make_searcher = &make_testing<SharingSearcher>;
    const OwnedRows all = vectors(rows, 1);
    const IndexShape shape =
        shape_with_attributes(Method::exact, ElementType::float32, Metric::l2, filtered_dimensions, 1);
    const Filtered index(shape, all.view(), std::vector<std::uint64_t>(rows), rows, {}, &method);
    SearchBatch query;
    query.count = 1;
    query.k = 10;
    PassCount count;
    count.rows = count.listed = rows / 2;
    EXPECT_TRUE(is_compared(*index.mirror, count, 1, query, {1, 1}));
    EXPECT_FALSE(is_compared(*index.mirror, count, 1, query, {100, 100}));
    EXPECT_TRUE(is_compared(*index.mirror, count, 1, query, {100, 1000}));
    // Few rows that pass are listed, and lists share nothing.
    count.listed = rows / 40;
    EXPECT_FALSE(is_compared(*index.mirror, count, 1, query, {100, 1000}));
}

std::vector<FilteredKind> tested_kinds()
{
    std::vector<FilteredKind> kinds = filtered_kinds();
    std::erase_if(kinds, [](const FilteredKind& kind) {
        return (kind.method != Method::exact && kind.method != Method::graph) || kind.element != ElementType::float32;
    });
    return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, TestedRows, testing::ValuesIn(tested_kinds()), name_of_kind);

}  // namespace
}  // namespace pgwarp
