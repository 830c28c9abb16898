// Searches with predicates of every method: only rows that pass, all that are wanted, in order; exact ones as a scan of
// all rows finds them. With delta rows, in parts or not, dead rows, rungs and continuations.
#include <gtest/gtest.h>

#include "engine/search/spread_search.h"
#include "filtered_kinds.h"
#include "forwarding_searcher.h"
#include "protocol/rungs.h"

namespace pgwarp
{
namespace
{

using namespace test;

class FilteredSearches : public FilteredSearchTest
{
};

TEST_P(FilteredSearches, FindWhatPasses)
{
    expect_what_passes(nullptr);
}

TEST_P(FilteredSearches, HoldForEveryPassRate)
{
    expect_every_pass_rate(nullptr);
}

// Searchers that know of bitmaps alone, as those of devices.
TEST_P(FilteredSearches, FindWhatPassesByBitmapsToo)
{
    const MethodFactory plain = forwarding_method(*find_method(GetParam().method));
    expect_what_passes(&plain);
    expect_every_pass_rate(&plain);
    expect_every_row(&plain);
}

TEST_P(FilteredSearches, AreTheSameInEveryBatch)
{
    expect_same_in_every_batch(nullptr);
}

TEST_P(FilteredSearches, ShareBatchesWithQueriesWithoutPredicates)
{
    const auto index = make(100);
    index->append();
    const OwnedRows asked = queries(8);
    QueryPredicates of_queries;
    const Predicate half = Predicate().where(0, 0, values / 2);
    for (std::size_t q = 0; q < 8; ++q)
        q % 2 == 0 ? of_queries.append(half) : of_queries.append(std::span<const std::uint64_t>());
    SearchAnswer mixed;
    run_search(index->settings(10, 40), {asked.view(), &of_queries}, nullptr, index->pool, mixed);
    const SearchAnswer with = index->search(index->settings(10, 40), asked.view(), std::vector<Predicate>(8, half));
    SearchAnswer without;
    run_search(index->settings(10, 40), asked.view(), nullptr, index->pool, without);
    EXPECT_TRUE(without.filtered.empty());
    std::size_t at[2] = {0, 0};
    std::size_t mixed_at = 0;
    for (std::size_t q = 0; q < 8; ++q) {
        const SearchAnswer& same = q % 2 == 0 ? with : without;
        ASSERT_EQ(mixed.counts[q], same.counts[q]);
        EXPECT_EQ(mixed.filtered[q].ways == FilterWays::none, q % 2 == 1);
        for (std::size_t i = 0; i < mixed.counts[q]; ++i)
            EXPECT_EQ(mixed.places[mixed_at + i], same.places[at[q % 2] + i]) << q;
        mixed_at += mixed.counts[q];
        at[0] += with.counts[q];
        at[1] += without.counts[q];
    }
}

// One request for several indexes: the answer of each is that of its search alone.
TEST_P(FilteredSearches, AreThoseOfEachIndexInSearchesOfMany)
{
    const std::unique_ptr<Filtered> indexes[] = {make(0), make(100)};
    indexes[1]->append();
    const OwnedRows asked = queries(3);
    RowView bare = asked.view();
    bare.attributes = nullptr;
    bare.attribute_count = 0;
    SpreadSearch search;
    search.queries = OwnedRows(bare);
    search.count = 3;
    const std::vector<Predicate> of_queries = predicates(3, 5);
    for (const Predicate& predicate : of_queries) search.predicates.append(predicate);
    for (const auto& index : indexes) search.targets.push_back({index->settings(10, 40), {}, {}, {}, {}, {}});
    run_spread_search(search, nullptr, indexes[0]->pool);
    for (std::size_t i = 0; i < 2; ++i) {
        const SpreadTarget& target = search.targets[i];
        const SearchAnswer alone = indexes[i]->search(indexes[i]->settings(10, 40), asked.view(), of_queries);
        ASSERT_EQ(target.answer.status, SearchStatus::answered);
        EXPECT_EQ(target.counts, alone.counts);
        EXPECT_EQ(target.places, alone.places);
        const FilterOutcome outcome = filtered_of(alone, 0, 3);
        EXPECT_EQ(target.answer.passing_rows, outcome.passing_rows);
        EXPECT_EQ(target.answer.filter_ways, outcome.ways);
    }
}

TEST_P(FilteredSearches, GoOnToTheLastRow)
{
    expect_every_row(nullptr);
}

// The rows of the first rung are those of its search alone, whatever rungs follow.
TEST_P(FilteredSearches, HaveOneSequenceForEveryLimit)
{
    const auto index = make(150);
    index->append();
    const OwnedRows asked = queries(6);
    for (const std::uint64_t last : {40, 400, 1500, 2999}) {
        const std::vector<Predicate> wanted(6, Predicate().where(0, 0, last));
        SearchSettings deep = index->settings(100, 2000);
        deep.earlier_count = 1;
        deep.earlier[0] = {400, 10, 0};
        const SearchAnswer all = index->search(deep, asked.view(), wanted);
        const SearchAnswer first = index->search(index->settings(10, 400), asked.view(), wanted);
        std::size_t all_at = 0;
        std::size_t first_at = 0;
        for (std::size_t q = 0; q < 6; ++q) {
            ASSERT_LE(first.counts[q], all.counts[q]);
            EXPECT_GE(all.counts[q], std::min<std::size_t>(95, index->count(wanted[q])));
            for (std::size_t i = 0; i < first.counts[q]; ++i)
                EXPECT_EQ(first.places[first_at + i], all.places[all_at + i]) << q << " " << i;
            all_at += all.counts[q];
            first_at += first.counts[q];
        }
    }
}

// An index that has delta rows alone, and one whose rows have no attributes.
TEST(FilteredSearch, OfAnEmptyIndexOrOneWithoutAttributes)
{
    const OwnedRows rows = vectors(300, 1);
    const OwnedRows asked = vectors(3, 2);
    const IndexShape shape =
        shape_with_attributes(Method::graph, ElementType::float32, Metric::l2, filtered_dimensions, 2);
    Filtered fresh(shape, rows.view(), random_attributes(300, 2, 100, 3), 0);
    fresh.append();
    const Predicate predicate = Predicate().where(0, 0, 30);
    const SearchAnswer answer = fresh.search(fresh.settings(10), asked.view(), std::vector<Predicate>(3, predicate));
    std::size_t at = 0;
    for (std::size_t q = 0; q < 3; ++q)
        for (const auto& [distance, row] : fresh.truth(asked.view().row(q), 10, predicate))
            EXPECT_EQ(row_of(answer.results[at++].tid), row);
    EXPECT_EQ(at, answer.results.size());
    EXPECT_EQ(answer.filtered[0].passing_rows, fresh.count(predicate));

    const IndexShape bare =
        shape_with_attributes(Method::graph, ElementType::float32, Metric::l2, filtered_dimensions, 0);
    Filtered all(bare, rows.view(), {}, 200);
    all.append();
    const SearchAnswer every = all.search(all.settings(10, 200), asked.view(), std::vector<Predicate>(3));
    EXPECT_EQ(every.counts, std::vector<std::uint32_t>(3, 10));
    EXPECT_EQ(every.filtered[0].passing_rows, 300U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FilteredSearches, testing::ValuesIn(filtered_kinds()), name_of_kind);

}  // namespace
}  // namespace pgwarp
