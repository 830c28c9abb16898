// Searches of many queries with predicates of their own, by searchers that find more rows at once, of which those that
// pass are kept.
#include <gtest/gtest.h>

#include <atomic>

#include "filtered_kinds.h"
#include "forwarding_searcher.h"

namespace pgwarp
{
namespace
{

using namespace test;

std::atomic<std::size_t> searches;

class WideningSearcher : public ForwardingSearcher
{
public:
    using ForwardingSearcher::ForwardingSearcher;
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        ++searches;
        ForwardingSearcher::search(batch, results, pool);
    }
    bool widen(SearchBatch& batch, std::uint32_t k) const override
    {
        batch.effort = batch.effort * k / batch.k;
        batch.k = k;
        return true;
    }
};

std::unique_ptr<Searcher> make_widening(const IndexShape& shape, const ParameterList& options,
                                        std::span<const ArrayShape> arrays)
{
    return std::make_unique<WideningSearcher>(find_method(shape.method)->make_searcher(shape, options, arrays));
}

class WidenedSearches : public FilteredSearchTest
{
protected:
    WidenedSearches() : method_(*find_method(GetParam().method)) { method_.make_searcher = &make_widening; }

    MethodFactory method_;
};

TEST_P(WidenedSearches, FindWhatPasses)
{
    expect_what_passes(&method_);
}

TEST_P(WidenedSearches, HoldForEveryPassRate)
{
    expect_every_pass_rate(&method_);
}

TEST_P(WidenedSearches, GoOnToTheLastRow)
{
    expect_every_row(&method_);
}

// Predicates of each query's own that as many rows pass.
TEST_P(WidenedSearches, AreOneSearchForManyPredicates)
{
    constexpr std::size_t count = 40;
    const auto index = make(0, &method_);
    index->kill({1, 2, 3, 500, 501, 3999}, 2);
    const OwnedRows asked = queries(count);
    for (const std::uint64_t passing : {values / 3, values / 2, 3 * values / 4}) {
        std::vector<Predicate> wanted;
        for (std::size_t q = 0; q < count; ++q) wanted.push_back(Predicate().where(0, q, q + passing));
        searches = 0;
        const SearchAnswer answer = index->search(index->settings(10, 400), asked.view(), wanted);
        EXPECT_EQ(searches, 1U);
        expect_right(*index, answer, asked.view(), wanted, 10);
        if (HasFatalFailure()) return;
    }
}

// Predicates that all rows pass, beside queries without one: the rows of a search without predicates.
TEST_P(WidenedSearches, FindTheSameWhereAllRowsPass)
{
    constexpr std::size_t count = 20;
    const auto index = make(0, &method_);
    const OwnedRows asked = queries(count);
    std::vector<Predicate> wanted;
    for (std::size_t q = 0; q < count; ++q)
        wanted.push_back(q % 4 == 0 ? Predicate() : Predicate().where(0, 0, values + q));
    searches = 0;
    const SearchAnswer answer = index->search(index->settings(10, 40), asked.view(), wanted);
    EXPECT_EQ(searches, 1U);
    SearchAnswer without;
    run_search(index->settings(10, 40), asked.view(), nullptr, index->pool, without);
    EXPECT_EQ(answer.counts, without.counts);
    EXPECT_EQ(answer.places, without.places);
}

// A query's rows don't depend on the queries beside it.
TEST_P(WidenedSearches, FindTheSameInEveryBatch)
{
    constexpr std::size_t count = 24;
    const auto index = make(0, &method_);
    const OwnedRows asked = queries(count);
    const auto wanted = predicates(count, 5);
    const SearchAnswer together = index->search(index->settings(10, 40), asked.view(), wanted);
    std::size_t at = 0;
    for (std::size_t q = 0; q < count; ++q) {
        const SearchAnswer alone = index->search(index->settings(10, 40), asked.view().row(q), {wanted[q]});
        ASSERT_EQ(alone.counts[0], together.counts[q]);
        for (std::size_t i = 0; i < alone.counts[0]; ++i) EXPECT_EQ(alone.places[i], together.places[at++]) << q;
    }
}

std::vector<FilteredKind> widened_kinds()
{
    std::vector<FilteredKind> kinds = filtered_kinds();
    std::erase_if(kinds, [](const FilteredKind& kind) {
        return kind.method == Method::exact || kind.method == Method::matchcount ||
               kind.element != ElementType::float32;
    });
    return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, WidenedSearches, testing::ValuesIn(widened_kinds()), name_of_kind);

}  // namespace
}  // namespace pgwarp
