#include "engine/search/filter_ways.h"

#include <algorithm>

#include "methods/tested_rows.h"
#include "protocol/search_bound.h"
#include "protocol/similarity.h"

namespace pgwarp
{

namespace
{

constexpr double test_cost = 100;    // of a row by a predicate, where rows come in any order
constexpr double mark_cost = 20;     // of a row in a bitmap
constexpr double gather_cost = 400;  // of reading a row that was not read before, beside comparing it
constexpr double order_cost = 2000;  // of a row in the order of a column
constexpr double page_cost = 1000;   // of finding the rows of a page of a bitmap
constexpr double place_cost = 40;    // of a row in the order of addresses
// How many times as fast as the CPU a device compares rows, and tests which pass.
constexpr double device_speed = 250;
// Of rows that pass, from which on a search without filters finds enough of them.
constexpr double least_searched_rate = .1;

}  // namespace

bool is_tested(const Mirror& mirror, const PassCount& count)
{
    constexpr std::uint64_t tested_share = 32;
    return count.listed >= mirror.rows() / tested_share;
}

bool may_find_few(const SearchBatch& batch)
{
    return within_of(batch.settings) < no_bound || batch.settings.get(setting_estimate, 0) != 0;
}

WayCosts costs_of(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                  Companions queries)
{
    const Searcher& searcher = mirror.searcher();
    const double all = static_cast<double>(mirror.rows());
    const auto passing = static_cast<double>(count.rows);
    const std::size_t sharing = searcher.finds_all() ? queries.with_predicate : 1;
    const double marked =
        mark_cost * all * static_cast<double>(std::max<std::size_t>(terms, 1)) / static_cast<double>(sharing);
    double compare = passing * (2 * mirror.row_values() + gather_cost);
    // Other searchers of a device tell their own costs as if the CPU compared rows.
    const auto* const tester = dynamic_cast<const TestsAllRows*>(&searcher);
    const bool by_device = terms > 0 && searcher.finds_all() && tester != nullptr && tester->tests_all_rows(query.k);
    if (by_device) compare /= device_speed;
    if (by_device && is_tested(mirror, count)) compare = std::min(compare, tester->shared_cost(queries.all));
    if (!searcher.compares_certain_rows()) {
        compare += marked;
    } else if (terms > 1 && !(by_device && is_tested(mirror, count))) {
        compare += static_cast<double>(count.listed) * test_cost;
    }
    const double rate = std::min(1.0, std::max(passing, 1.0) / std::max(all, 1.0));
    const double search = searcher.filtered_cost(query, rate) + (tests_rows(mirror, terms == 0) ? 0 : marked);
    return {compare, search};
}

bool tests_rows(const Mirror& mirror, bool named)
{
    return mirror.searcher().takes_filters() && !(named && mirror.on_cuda());
}

bool may_miss(const Mirror& mirror, bool named)
{
    return !mirror.searcher().finds_all() && !tests_rows(mirror, named);
}

bool is_compared(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                 Companions queries)
{
    if (count.rows <= query.k) return true;
    const double rate = static_cast<double>(count.rows) / static_cast<double>(mirror.rows());
    const bool named = terms == 0;
    if (may_miss(mirror, named) && rate < least_searched_rate) return true;
    // Costs are those of the CPU.
    if (mirror.on_cuda() && !mirror.searcher().compares_certain_rows() && !tests_rows(mirror, named)) return false;
    const WayCosts costs = costs_of(mirror, count, terms, query, queries);
    return costs.compare <= costs.search;
}

std::size_t terms_of(std::span<const std::uint64_t> predicate)
{
    return predicate.empty() ? 0 : static_cast<std::size_t>(predicate[0]);
}

bool is_stretch(std::span<const std::uint64_t> predicate)
{
    if (terms_of(predicate) != 1) return false;
    PredicateTerms terms(predicate);
    PredicateTerm term;
    return terms.next(&term) && term.range_count() == 1;
}

double filtered_cost(Mirror& mirror, std::span<const std::uint64_t> predicate, const SearchBatch& query)
{
    FilterIndex& filter = mirror.filter();
    const double all = static_cast<double>(mirror.rows());
    if (!filter.is_ready(predicate)) return order_cost * all * static_cast<double>(terms_of(predicate));
    const PassCount count = filter.count(predicate, caller_alone());
    const WayCosts costs = costs_of(mirror, count, terms_of(predicate), query);
    return is_compared(mirror, count, terms_of(predicate), query) ? costs.compare : costs.search;
}

double named_cost(Mirror& mirror, const TidBitmap& tids, const SearchBatch& query)
{
    TidOrder& order = mirror.tid_order();
    const double ordering = order.is_ready() ? 0 : place_cost * static_cast<double>(mirror.rows());
    const double listing = page_cost * static_cast<double>(tids.pages());
    PassCount count;
    count.rows = count.listed = order.estimate(tids);
    const WayCosts costs = costs_of(mirror, count, 0, query);
    return ordering + listing + (is_compared(mirror, count, 0, query) ? costs.compare : costs.search);
}

}  // namespace pgwarp
