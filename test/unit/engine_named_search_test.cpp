// Searches among the rows of a bitmap of heap addresses, of every method: as those with the predicate that the rows of
// the bitmap pass. With delta rows, in parts or not, dead rows, predicates besides, and continuations.
#include <gtest/gtest.h>

#include "filtered_kinds.h"
#include "forwarding_searcher.h"

namespace pgwarp
{
namespace
{

using namespace test;

class NamedSearches : public FilteredSearchTest
{
};

TEST_P(NamedSearches, FindTheRowsOfABitmap)
{
    expect_named(nullptr);
}

// Searchers that know of bitmaps alone, as those of devices.
TEST_P(NamedSearches, FindThemByBitmapsOfRowsToo)
{
    const MethodFactory plain = forwarding_method(*find_method(GetParam().method));
    expect_named(&plain);
}

TEST_P(NamedSearches, PassPredicatesToo)
{
    const auto index = make(300);
    index->append();
    index->kill({2, 3, 5, 7, indexed + 11}, 2);
    const OwnedRows asked = queries(6);
    for (const std::uint64_t below : {30, 1000, 2900}) {
        const Predicate named = Predicate().where(0, 0, below - 1);
        const Predicate other = Predicate().where(1, 0, values / 20);
        const Predicate both = Predicate().where(0, 0, below - 1).where(1, 0, values / 20);
        for (const std::uint32_t k : {10U, 100U}) {
            const SearchAnswer answer =
                search_among(*index, index->settings(k), asked.view(), named, std::vector<Predicate>(6, other));
            expect_right(*index, answer, asked.view(), std::vector<Predicate>(6, both), k);
        }
    }
}

TEST_P(NamedSearches, GoOnToTheLastRow)
{
    const auto index = make(150);
    index->append();
    index->kill({1, 5, 9, indexed + 3}, 2);
    const OwnedRows asked = queries(1);
    const Predicate named = Predicate().where(0, 100, 700);
    SearchSettings settings = index->settings(37);
    settings.mode = SearchMode::continuation;
    settings.after = {-HUGE_VAL, 0};
    std::set<std::size_t> seen;
    while (true) {
        const SearchAnswer page = search_among(*index, settings, asked.view(), named);
        if (page.counts[0] == 0) break;
        for (const Result& result : page.results) {
            const std::size_t row = row_of(result.tid);
            EXPECT_TRUE(index->lives(row, named));
            EXPECT_TRUE(seen.insert(row).second);
        }
        settings.after = cursor_behind(page.results, page.places, settings.after);
    }
    EXPECT_EQ(seen.size(), index->count(named));
    EXPECT_GT(seen.size(), 100U);
}

TEST_P(NamedSearches, OfNoRowFindNone)
{
    const auto index = make(100);
    index->append();
    SearchSettings settings = index->settings(10);
    settings.tids = std::make_shared<const TidBitmap>(bitmap_of({{1000000, 1, 0}}, {}));
    const OwnedRows asked = queries(2);
    const SearchAnswer answer = index->search(settings, asked.view(), {});
    EXPECT_EQ(answer.counts, std::vector<std::uint32_t>(2, 0));
    EXPECT_EQ(answer.filtered[0].passing_rows, 0U);
}

TEST_P(NamedSearches, HaveAnExpectedCost)
{
    const auto index = make(0);
    const OwnedRows asked = queries(1);
    SearchSettings few = index->settings(10);
    few.tids = index->tids_of(Predicate().where(0, 0, 3));
    SearchSettings many = index->settings(10);
    many.tids = index->tids_of(Predicate().where(0, 0, 300));
    (void)index->search(few, asked.view(), {});
    EXPECT_GT(estimate_cost(few, asked.view()), 0);
    EXPECT_GT(estimate_cost(many, asked.view()), estimate_cost(few, asked.view()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, NamedSearches, testing::ValuesIn(filtered_kinds()), name_of_kind);

}  // namespace
}  // namespace pgwarp
