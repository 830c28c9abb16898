// The choice of a way for each predicate, and the searches.
#include "engine/search/filtered_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "methods/rows/owned_rows.h"
#include "protocol/search_bound.h"
#include "protocol/similarity.h"

namespace pgwarp
{

namespace
{

// Costs in float operations, of which searches do some 20 in a nanosecond.
constexpr double test_cost = 100;    // of a row by a predicate, where rows come in any order
constexpr double mark_cost = 20;     // of a row in a bitmap
constexpr double gather_cost = 400;  // of reading a row that was not read before, beside comparing it
constexpr double order_cost = 2000;  // of a row in the order of a column
// Of rows that pass, from which on a search without filters finds enough of them; and what tells whether these are as
// many near a query as anywhere.
constexpr double least_searched_rate = .1;
constexpr double least_widened_rate = .03;  // where searches for more rows find enough
constexpr std::uint32_t near_rows = 160;
constexpr double fewest_expected = 12;   // of near rows that pass
constexpr double far_factor = 3;         // fewer
constexpr std::int64_t near_effort = 4;  // a part of the effort

constexpr std::size_t delta_grain = 4;                           // queries whose delta rows a thread compares at a time
constexpr std::uint64_t most_listed = std::uint64_t{1} << 24;    // rows in lists that are made, at a time
constexpr std::uint64_t most_compared = std::uint64_t{1} << 28;  // rows that are compared, at a time
// The most rows that a query is searched for without its predicate, to test them afterwards.
constexpr std::uint32_t most_tested = 2048;
constexpr std::size_t most_found = std::size_t{1} << 22;  // rows that are found so at a time
constexpr std::size_t test_grain = 16;                    // queries whose rows a thread tests at a time

std::string_view key_of(std::span<const std::uint64_t> predicate)
{
    return {reinterpret_cast<const char*>(predicate.data()), predicate.size_bytes()};
}

// The queries of a batch with these numbers, in ascending order, as a batch; copied into `memory` unless they are all.
SearchBatch pick(const SearchBatch& batch, std::span<const std::uint32_t> numbers, OwnedRows& memory)
{
    if (numbers.size() == batch.count) return batch;
    const std::size_t width = batch.lists.offsets == nullptr ? batch.queries.size() / batch.count : 0;
    memory.clear();
    for (const std::uint32_t q : numbers)
        memory.append(width > 0 ? dense_rows(batch.queries.data() + q * width, 1, width) : batch.lists.row(q));
    SearchBatch picked = batch;
    picked.count = numbers.size();
    if (width > 0) {
        picked.queries = memory.view().dense();
    } else {
        picked.lists = memory.view();
    }
    return picked;
}

// Searches that may find few rows on purpose are never completed.
bool may_find_few(const SearchBatch& batch)
{
    return within_of(batch.settings) < no_bound || batch.settings.get(setting_estimate, 0) != 0;
}

// Costs of a query in each way.
struct WayCosts {
    double compare;
    double search;
};

// queries: with that predicate, which share a bitmap. Only where both ways give the same rows may the choice depend on
// them.
WayCosts costs_of(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                  std::size_t queries = 1)
{
    const Searcher& searcher = mirror.searcher();
    const double all = static_cast<double>(mirror.rows());
    const auto passing = static_cast<double>(count.rows);
    const std::size_t sharing = searcher.finds_all() ? queries : 1;
    const double marked =
        mark_cost * all * static_cast<double>(std::max<std::size_t>(terms, 1)) / static_cast<double>(sharing);
    double compare = passing * (2 * mirror.row_values() + gather_cost);
    if (!searcher.compares_certain_rows()) {
        compare += marked;
    } else if (terms > 1) {
        compare += static_cast<double>(count.listed) * test_cost;
    }
    const double rate = std::min(1.0, std::max(passing, 1.0) / std::max(all, 1.0));
    const double search = searcher.filtered_cost(query, rate) + (searcher.takes_filters() ? 0 : marked);
    return {compare, search};
}

// The rows that a query without its predicate is searched for, so that k of them pass, nearly always.
std::uint32_t tested_rows(const Mirror& mirror, const PassCount& count, std::size_t terms, std::uint32_t k)
{
    const auto rows = static_cast<double>(mirror.rows());
    const auto passing = static_cast<double>(count.rows);
    if (terms == 0 || passing >= rows) return k;
    constexpr double deviations = 3;
    const double wanted = (k + deviations * std::sqrt(k) + deviations) * rows / std::max(passing, 1.0);
    if (wanted > most_tested) return std::max(k, most_tested + 1);
    // Few widths, as each is a search of its own.
    return std::max(k, std::bit_ceil(static_cast<std::uint32_t>(wanted)));
}

// Whether the query is searched for without its predicate; then `batch` becomes that search.
bool is_widened(const Mirror& mirror, std::uint32_t width, SearchBatch& batch)
{
    return width <= most_tested && mirror.searcher().widen(batch, width);
}

// Whether the search may miss rows that pass, and doesn't tell.
bool may_miss(const Searcher& searcher)
{
    return !searcher.finds_all() && !searcher.takes_filters();
}

// Whether the rows that pass are compared: the way that costs less.
bool is_compared(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query,
                 std::size_t queries = 1)
{
    if (count.rows <= query.k) return true;
    const double rate = static_cast<double>(count.rows) / static_cast<double>(mirror.rows());
    SearchBatch widened = query;
    const bool widens = is_widened(mirror, tested_rows(mirror, count, terms, query.k), widened);
    const double least = widens && !may_find_few(query) ? least_widened_rate : least_searched_rate;
    if (may_miss(mirror.searcher()) && rate < least) return true;
    // Costs are those of the CPU.
    if (mirror.on_cuda() && !mirror.searcher().compares_certain_rows()) return false;
    const WayCosts costs = costs_of(mirror, count, terms, query, queries);
    return costs.compare <= costs.search;
}

std::size_t terms_of(std::span<const std::uint64_t> predicate)
{
    return predicate.empty() ? 0 : static_cast<std::size_t>(predicate[0]);
}

// Whether the rows that pass are a stretch of an order, so that no list of them is made.
bool is_stretch(std::span<const std::uint64_t> predicate)
{
    if (terms_of(predicate) != 1) return false;
    PredicateTerms terms(predicate);
    PredicateTerm term;
    return terms.next(&term) && term.range_count() == 1;
}

SearchBatch first_query(const SearchBatch& batch)
{
    SearchBatch one = batch;
    one.count = 1;
    return one;
}

}  // namespace

FilteredSearch::FilteredSearch(Mirror& mirror, const MirrorSnapshot& snapshot, const QueryPredicates& predicates,
                               const SearchBatch& batch, ThreadPool& pool)
    : mirror_(mirror), snapshot_(snapshot), batch_(batch), pool_(pool)
{
    make_groups(predicates);
}

void FilteredSearch::make_groups(const QueryPredicates& predicates)
{
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t q = 0; q < batch_.count; ++q) {
        const auto [number, added] =
            numbers.try_emplace(key_of(predicates.of(q)), static_cast<std::uint32_t>(groups_.size()));
        if (added) groups_.emplace_back().predicate = predicates.of(q);
        groups_[number->second].queries.push_back(q);
        group_of_.push_back(number->second);
    }
    pool_.parallel_for(groups_.size(), 4, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            Group& group = groups_[i];
            group.count = mirror_.filter().count(group.predicate, pool_);
            group.passing_rows = group.count.rows;
            if (!group.predicate.empty()) group.delta_rows = count_passing(snapshot_, group.predicate);
        }
    });
}

void FilteredSearch::search(std::uint32_t k, std::int64_t effort, Results& results)
{
    results.assign(batch_.count, {});
    SearchBatch batch = batch_;
    batch.k = k;
    batch.effort = effort;
    const bool searches_all = batch.settings.get(setting_estimate, 0) != 0;
    searched_.clear();
    std::vector<Task> tasks;
    for (Group& group : groups_) {
        const bool compared =
            !group.predicate.empty() && !searches_all &&
            is_compared(mirror_, group.count, terms_of(group.predicate), first_query(batch), group.queries.size());
        if (compared) {
            tasks.push_back({&group, group.queries});
        } else {
            searched_.push_back({&group, group.queries});
        }
    }
    if (may_miss(mirror_.searcher()) && !searches_all) {
        if (!may_find_few(batch)) search_and_test(batch, tasks, results);
        take_far_queries(batch, tasks);
    }
    if (!searched_.empty()) {
        for (Task& task : searched_)
            if (!task.group->predicate.empty()) task.group->ways = task.group->ways | FilterWays::searched;
        mirror_.searcher().takes_filters() ? search_with_filters(batch, results) : search_by_groups(batch, results);
        if (!may_find_few(batch) && !mirror_.searcher().finds_all()) {
            std::vector<Task> more = unfinished(batch, results);
            std::move(more.begin(), more.end(), std::back_inserter(tasks));
        }
    }
    compare(batch, before_all, tasks, results);
}

void FilteredSearch::search_after(std::uint32_t k, const RowResult& after, Results& results)
{
    results.assign(batch_.count, {});
    SearchBatch batch = batch_;
    batch.k = k;
    std::vector<Task> tasks;
    for (Group& group : groups_) tasks.push_back({&group, group.queries});
    compare(batch, after, tasks, results);
}

// The queries of tasks, in ascending order.
FilteredSearch::Numbers FilteredSearch::numbers_of(std::span<const Task> tasks) const
{
    Numbers numbers;
    for (const Task& task : tasks) numbers.insert(numbers.end(), task.queries.begin(), task.queries.end());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

// Searches for more rows than k, for many queries at once, and keeps those that pass. Takes queries out of the searched
// ones: those answered, and those of which too few rows pass near them. The width of a query alone decides how it is
// searched, whatever queries are beside it.
void FilteredSearch::search_and_test(const SearchBatch& batch, std::vector<Task>& far, Results& results)
{
    std::map<std::uint32_t, Numbers> of_width;
    for (const Task& task : searched_) {
        const std::size_t terms = terms_of(task.group->predicate);
        Numbers& numbers = of_width[tested_rows(mirror_, task.group->count, terms, batch.k)];
        numbers.insert(numbers.end(), task.queries.begin(), task.queries.end());
    }
    std::vector<bool> done(batch.count);
    for (auto& [width, numbers] : of_width) {
        SearchBatch widened = batch;
        if (!is_widened(mirror_, width, widened)) continue;
        std::sort(numbers.begin(), numbers.end());
        const std::size_t step = most_found / width;
        for (std::size_t first = 0; first < numbers.size(); first += step) {
            const std::size_t some = std::min(step, numbers.size() - first);
            search_wider(batch, widened, std::span(numbers).subspan(first, some), far, results);
        }
        for (const std::uint32_t q : numbers) done[q] = true;
    }
    // All queries of a group have one width.
    std::erase_if(searched_, [&](const Task& task) { return done[task.queries.front()]; });
}

// widened: the batch with the width of these queries.
void FilteredSearch::search_wider(const SearchBatch& batch, const SearchBatch& widened,
                                  std::span<const std::uint32_t> numbers, std::vector<Task>& far, Results& results)
{
    OwnedRows memory;
    Results found(numbers.size());
    mirror_.searcher().search(pick(widened, numbers, memory), found, pool_);
    keep_passing(batch, numbers, found);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        Group& group = groups_[group_of_[numbers[i]]];
        if (!group.predicate.empty()) group.ways = group.ways | FilterWays::searched;
        if (found[i].size() < batch.k && !group.predicate.empty()) {
            far.push_back({&group, {numbers[i]}});
        } else {
            results[numbers[i]] = std::move(found[i]);
        }
    }
}

// Leaves the first batch.k rows that pass.
void FilteredSearch::keep_passing(const SearchBatch& batch, std::span<const std::uint32_t> numbers, Results& found)
{
    const FilterIndex& index = mirror_.filter();
    pool_.parallel_for(numbers.size(), test_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const auto predicate = groups_[group_of_[numbers[i]]].predicate;
            std::vector<RowResult>& rows = found[i];
            const auto fails = [&](const RowResult& row) {
                return !passes(predicate, index.attributes() + row.row * index.columns());
            };
            if (!predicate.empty()) std::erase_if(rows, fails);
            if (rows.size() > batch.k) rows.resize(batch.k);
        }
    });
}

// Takes queries out of the searched ones of which far fewer near rows pass than of all: then those that pass lie far
// away, in directions that the search doesn't look in. A small search without predicates finds the near rows.
void FilteredSearch::take_far_queries(const SearchBatch& batch, std::vector<Task>& far)
{
    const Numbers numbers = numbers_of(searched_);
    if (numbers.empty()) return;
    OwnedRows memory;
    SearchBatch picked = pick(batch, numbers, memory);
    picked.k = near_rows;
    picked.effort = (batch.effort + near_effort - 1) / near_effort;
    picked.proposals_will_do = true;
    Results near(numbers.size());
    mirror_.searcher().search(picked, near, pool_);
    const FilterIndex& index = mirror_.filter();
    for (Task& task : searched_) {
        if (task.group->predicate.empty()) continue;
        const auto is_near = [&](std::uint32_t q) {
            const auto at = std::lower_bound(numbers.begin(), numbers.end(), q) - numbers.begin();
            const std::vector<RowResult>& rows = near[static_cast<std::size_t>(at)];
            const double expected = static_cast<double>(task.group->count.rows) * static_cast<double>(rows.size()) /
                                    static_cast<double>(mirror_.rows());
            const auto passed = std::count_if(rows.begin(), rows.end(), [&](const RowResult& row) {
                return passes(task.group->predicate, index.attributes() + row.row * index.columns());
            });
            return expected < fewest_expected || far_factor * static_cast<double>(passed) >= expected;
        };
        const auto others = std::stable_partition(task.queries.begin(), task.queries.end(), is_near);
        if (others != task.queries.end()) far.push_back({task.group, {others, task.queries.end()}});
        task.queries.erase(others, task.queries.end());
    }
    std::erase_if(searched_, [](const Task& task) { return task.queries.empty(); });
}

// One search of all those queries, which tests rows by the filter of each.
void FilteredSearch::search_with_filters(const SearchBatch& batch, Results& results)
{
    const Numbers numbers = numbers_of(searched_);
    const FilterIndex& index = mirror_.filter();
    std::vector<RowFilter> filters;
    for (const std::uint32_t q : numbers) {
        const Group& group = groups_[group_of_[q]];
        filters.push_back({group.predicate, index.attributes(), index.columns(), group.count.rows, group.count.some});
    }
    OwnedRows memory;
    SearchBatch picked = pick(batch, numbers, memory);
    picked.filters = filters;
    Results found(picked.count);
    mirror_.searcher().search(picked, found, pool_);
    for (std::size_t i = 0; i < numbers.size(); ++i) results[numbers[i]] = std::move(found[i]);
}

// A search for each predicate, whose failing rows are among the dead.
void FilteredSearch::search_by_groups(const SearchBatch& batch, Results& results)
{
    const auto search_task = [&](const Task& task) {
        const Group& group = *task.group;
        OwnedRows memory;
        SearchBatch picked = pick(batch, task.queries, memory);
        std::shared_ptr<const FailingRows> failing;
        if (!group.predicate.empty()) {
            failing = mirror_.filter().failing(group.predicate, batch.dead, batch.dead_version, pool_);
            picked.dead = failing->bits;
            picked.dead_version = failing->version;
            const double rate = static_cast<double>(failing->live) / std::max(static_cast<double>(mirror_.rows()), 1.0);
            picked.effort = mirror_.searcher().filtered_effort(batch.effort, rate);
        }
        Results found(picked.count);
        mirror_.searcher().search(picked, found, pool_);
        for (std::size_t i = 0; i < task.queries.size(); ++i) results[task.queries[i]] = std::move(found[i]);
    };
    // A device takes one search at a time.
    ThreadPool& threads = mirror_.on_cuda() ? caller_alone() : pool_;
    threads.parallel_for(searched_.size(), 1, [&](std::size_t begin, std::size_t) { search_task(searched_[begin]); });
}

// The queries that were searched and found fewer rows than pass.
std::vector<FilteredSearch::Task> FilteredSearch::unfinished(const SearchBatch& batch, const Results& results)
{
    std::vector<Task> tasks;
    for (const Task& searched : searched_) {
        Group* const group = searched.group;
        if (group->predicate.empty()) continue;
        const std::uint64_t wanted = group->count.exact ? std::min<std::uint64_t>(batch.k, group->count.rows) : batch.k;
        Task task{group, {}};
        for (const std::uint32_t q : searched.queries)
            if (results[q].size() < wanted) task.queries.push_back(q);
        if (!task.queries.empty()) tasks.push_back(std::move(task));
    }
    return tasks;
}

void FilteredSearch::compare(const SearchBatch& batch, const RowResult& after, std::vector<Task>& tasks,
                             Results& results)
{
    if (!mirror_.searcher().compares_certain_rows()) return scan(batch, after, tasks, results);
    for (std::size_t begin = 0; begin < tasks.size();) {
        std::size_t end = begin;
        std::uint64_t listed = 0;
        std::uint64_t compared = 0;
        for (; end < tasks.size() && listed < most_listed && compared < most_compared; ++end) {
            const Group& group = *tasks[end].group;
            if (!is_stretch(group.predicate)) listed += group.count.listed;
            compared += group.count.listed * tasks[end].queries.size();
        }
        compare_lists(batch, after, std::span(tasks).subspan(begin, end - begin), results);
        begin = end;
    }
}

// Lists the rows that pass, and has them compared.
void FilteredSearch::compare_lists(const SearchBatch& batch, const RowResult& after, std::span<const Task> tasks,
                                   Results& results)
{
    std::vector<std::shared_ptr<const PassingRows>> lists(tasks.size());
    pool_.parallel_for(tasks.size(), 1, [&](std::size_t i, std::size_t) {
        lists[i] = mirror_.filter().passing(tasks[i].group->predicate, pool_);
    });
    std::vector<RowList> list_of(batch.count);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        Group& group = *tasks[i].group;
        group.passing_rows = lists[i]->rows.size();
        group.ways = group.ways | FilterWays::compared;
        for (const std::uint32_t q : tasks[i].queries) list_of[q] = lists[i]->rows;
    }
    const Numbers numbers = numbers_of(tasks);
    std::vector<RowList> rows;
    for (const std::uint32_t q : numbers) rows.push_back(list_of[q]);
    OwnedRows memory;
    Results found(numbers.size());
    mirror_.searcher().search_among(pick(batch, numbers, memory), rows, after, found, pool_);
    for (std::size_t i = 0; i < numbers.size(); ++i) results[numbers[i]] = std::move(found[i]);
}

// Exact searches with the failing rows among the dead.
void FilteredSearch::scan(const SearchBatch& batch, const RowResult& after, std::span<const Task> tasks,
                          Results& results)
{
    // Two tasks may have the same group.
    for (const Task& task : tasks) task.group->ways = task.group->ways | FilterWays::scanned;
    ThreadPool& threads = mirror_.on_cuda() ? caller_alone() : pool_;
    threads.parallel_for(tasks.size(), 1, [&](std::size_t i, std::size_t) {
        const Group& group = *tasks[i].group;
        const auto failing = mirror_.filter().failing(group.predicate, batch.dead, batch.dead_version, pool_);
        threads.parallel_for(tasks[i].queries.size(), 1, [&](std::size_t at, std::size_t) {
            const std::uint32_t q = tasks[i].queries[at];
            OwnedRows memory;
            SearchBatch one = pick(batch, {&q, 1}, memory);
            one.dead = failing->bits;
            one.dead_version = failing->version;
            mirror_.searcher().search_exact(one, after.distance, after.row, results[q], pool_);
        });
    });
}

void FilteredSearch::search_delta(std::uint32_t k, std::vector<std::vector<Found>>& found)
{
    pool_.parallel_for(batch_.count, delta_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            pgwarp::search_delta(mirror_, snapshot_, DeltaRows::all, query_of(mirror_, batch_, q), k, batch_.cancel,
                                 pool_, found[q], groups_[group_of_[q]].predicate);
        }
    });
}

std::vector<FilterOutcome> FilteredSearch::outcomes() const
{
    std::vector<FilterOutcome> outcomes;
    for (const std::uint32_t group : group_of_) {
        const Group& own = groups_[group];
        if (own.predicate.empty()) {
            outcomes.emplace_back();
        } else {
            outcomes.push_back({own.passing_rows + own.delta_rows, own.ways});
        }
    }
    return outcomes;
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

}  // namespace pgwarp
