// The groups of queries, and their searches by the method.
#include "engine/search/filtered_search.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "engine/search/filter_ways.h"
#include "engine/search/picked_queries.h"
#include "protocol/similarity.h"

namespace pgwarp
{

namespace
{

// What tells whether rows that pass are as many near a query as anywhere.
constexpr std::uint32_t near_rows = 160;
constexpr double fewest_expected = 12;   // of near rows that pass
constexpr double far_factor = 3;         // fewer
constexpr std::int64_t near_effort = 4;  // a part of the effort

constexpr std::size_t delta_grain = 4;  // queries whose delta rows a thread compares at a time

std::string_view key_of(std::span<const std::uint64_t> predicate)
{
    return {reinterpret_cast<const char*>(predicate.data()), predicate.size_bytes()};
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
    if (may_miss(mirror_.searcher()) && !searches_all) take_far_queries(batch, tasks);
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

std::vector<RowFilter> FilteredSearch::filters_of(std::span<const std::uint32_t> numbers) const
{
    const FilterIndex& index = mirror_.filter();
    std::vector<RowFilter> filters;
    for (const std::uint32_t q : numbers) {
        const Group& group = groups_[group_of_[q]];
        filters.push_back({group.predicate, index.attributes(), index.columns(), group.count.rows, group.count.some});
    }
    return filters;
}

// One search of all those queries, which tests rows by the filter of each.
void FilteredSearch::search_with_filters(const SearchBatch& batch, Results& results)
{
    const Numbers numbers = numbers_of(searched_);
    const std::vector<RowFilter> filters = filters_of(numbers);
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

}  // namespace pgwarp
