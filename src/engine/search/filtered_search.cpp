// The choice of a way for each predicate, and the searches.
#include "engine/search/filtered_search.h"

#include <algorithm>
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
constexpr double page_cost = 1000;   // of finding the rows of a page of a bitmap
constexpr double place_cost = 40;    // of a row in the order of addresses
// Of rows that pass, from which on a search without filters finds enough of them; and what tells whether these are as
// many near a query as anywhere.
constexpr double least_searched_rate = .1;
constexpr std::uint32_t near_rows = 160;
constexpr double fewest_expected = 12;   // of near rows that pass
constexpr double far_factor = 3;         // fewer
constexpr std::int64_t near_effort = 4;  // a part of the effort

constexpr std::size_t filtered_delta_grain = 4;                // queries whose delta rows a thread compares at a time
constexpr std::uint64_t most_listed = std::uint64_t{1} << 24;  // rows in lists at a time

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

WayCosts costs_of(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query)
{
    const Searcher& searcher = mirror.searcher();
    const double all = static_cast<double>(mirror.rows());
    const auto passing = static_cast<double>(count.rows);
    const double marked = mark_cost * all * static_cast<double>(std::max<std::size_t>(terms, 1));
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

// Whether the search may miss rows that pass, and doesn't tell.
bool may_miss(const Searcher& searcher)
{
    return !searcher.finds_all() && !searcher.takes_filters();
}

// Whether the rows that pass are compared: the way that costs less.
bool is_compared(const Mirror& mirror, const PassCount& count, std::size_t terms, const SearchBatch& query)
{
    if (count.rows <= query.k) return true;
    const double rate = static_cast<double>(count.rows) / static_cast<double>(mirror.rows());
    if (may_miss(mirror.searcher()) && rate < least_searched_rate) return true;
    // Costs are those of the CPU.
    if (mirror.on_cuda() && !mirror.searcher().compares_certain_rows()) return false;
    const WayCosts costs = costs_of(mirror, count, terms, query);
    return costs.compare <= costs.search;
}

SearchBatch first_query(const SearchBatch& batch)
{
    SearchBatch one = batch;
    one.count = 1;
    return one;
}

}  // namespace

FilteredSearch::FilteredSearch(Mirror& mirror, const MirrorSnapshot& snapshot, const QueryPredicates& predicates,
                               const TidBitmap* tids, const SearchBatch& batch, ThreadPool& pool)
    : mirror_(mirror), snapshot_(snapshot), tids_(tids), batch_(batch), pool_(pool)
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
        for (std::size_t i = begin; i < end; ++i) count_group(groups_[i]);
    });
}

void FilteredSearch::count_group(Group& group)
{
    if (tids_ != nullptr) group.named = name_rows(group.predicate);
    group.count = group.named != nullptr ? group.named->count() : mirror_.filter().count(group.predicate, pool_);
    group.passing_rows = group.count.rows;
    if (!group.takes_all()) group.delta_rows = count_passing(snapshot_, {group.predicate, tids_});
}

// The rows with an address of the bitmap that pass a predicate.
std::unique_ptr<NamedRows> FilteredSearch::name_rows(std::span<const std::uint64_t> predicate)
{
    std::vector<std::uint32_t> rows = mirror_.tid_order().rows_of(*tids_, pool_);
    const FilterIndex& index = mirror_.filter();
    if (!predicate.empty()) {
        std::erase_if(
            rows, [&](std::uint32_t row) { return !passes(predicate, index.attributes() + row * index.columns()); });
    }
    return std::make_unique<NamedRows>(std::move(rows), mirror_.rows());
}

std::shared_ptr<const PassingRows> FilteredSearch::passing_of(const Group& group)
{
    return group.named != nullptr ? group.named->passing() : mirror_.filter().passing(group.predicate, pool_);
}

std::shared_ptr<const FailingRows> FilteredSearch::failing_of(const Group& group)
{
    if (group.named != nullptr) return group.named->failing(batch_.dead);
    return mirror_.filter().failing(group.predicate, batch_.dead, batch_.dead_version, pool_);
}

// By which rows are tested one by one; the group outlives it.
RowFilter FilteredSearch::filter_of(const Group& group)
{
    const FilterIndex& index = mirror_.filter();
    if (group.named == nullptr)
        return {group.predicate, index.attributes(), index.columns(), group.count.rows, group.count.some};
    return {{}, nullptr, 0, group.count.rows, group.count.some, failing_of(group)->bits};
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
            !group.takes_all() && !searches_all && is_compared(mirror_, group.count, group.terms(), first_query(batch));
        if (compared) {
            tasks.push_back({&group, group.queries});
        } else {
            searched_.push_back({&group, group.queries});
        }
    }
    if (may_miss(mirror_.searcher()) && !searches_all) take_far_queries(batch, tasks);
    if (!searched_.empty()) {
        for (Task& task : searched_)
            if (!task.group->takes_all()) task.group->ways = task.group->ways | FilterWays::searched;
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
    for (Task& task : searched_) {
        if (task.group->takes_all()) continue;
        const RowFilter filter = filter_of(*task.group);
        const auto is_near = [&](std::uint32_t q) {
            const auto at = std::lower_bound(numbers.begin(), numbers.end(), q) - numbers.begin();
            const std::vector<RowResult>& rows = near[static_cast<std::size_t>(at)];
            const double expected = static_cast<double>(task.group->count.rows) * static_cast<double>(rows.size()) /
                                    static_cast<double>(mirror_.rows());
            const auto passed =
                std::count_if(rows.begin(), rows.end(), [&](const RowResult& row) { return filter.passes(row.row); });
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
    std::vector<RowFilter> filters;
    for (const std::uint32_t q : numbers) filters.push_back(filter_of(groups_[group_of_[q]]));
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
        if (!group.takes_all()) {
            failing = failing_of(group);
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
        if (group->takes_all()) continue;
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
        for (std::uint64_t listed = 0; end < tasks.size() && listed < most_listed; ++end)
            listed += tasks[end].group->count.listed;
        compare_lists(batch, after, std::span(tasks).subspan(begin, end - begin), results);
        begin = end;
    }
}

// Lists the rows that pass, and has them compared.
void FilteredSearch::compare_lists(const SearchBatch& batch, const RowResult& after, std::span<const Task> tasks,
                                   Results& results)
{
    std::vector<std::shared_ptr<const PassingRows>> lists(tasks.size());
    pool_.parallel_for(tasks.size(), 1, [&](std::size_t i, std::size_t) { lists[i] = passing_of(*tasks[i].group); });
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
        const auto failing = failing_of(group);
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
    pool_.parallel_for(batch_.count, filtered_delta_grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            pgwarp::search_delta(mirror_, snapshot_, DeltaRows::all, query_of(mirror_, batch_, q), k, batch_.cancel,
                                 pool_, found[q], {groups_[group_of_[q]].predicate, tids_});
        }
    });
}

std::vector<FilterOutcome> FilteredSearch::outcomes() const
{
    std::vector<FilterOutcome> outcomes;
    for (const std::uint32_t group : group_of_) {
        const Group& own = groups_[group];
        if (own.takes_all()) {
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
    const auto terms = predicate.empty() ? 0 : static_cast<std::size_t>(predicate[0]);
    if (!filter.is_ready(predicate)) return order_cost * all * static_cast<double>(terms);
    const PassCount count = filter.count(predicate, caller_alone());
    const WayCosts costs = costs_of(mirror, count, terms, query);
    return is_compared(mirror, count, terms, query) ? costs.compare : costs.search;
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
