// The groups of queries, and their searches by the method.
#include "engine/search/filtered_search.h"

#include <algorithm>
#include <unordered_map>

#include "engine/search/filter_ways.h"
#include "engine/search/picked_queries.h"
#include "protocol/predicate_hash.h"
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

constexpr std::size_t filtered_delta_grain = 4;  // queries whose delta rows a thread compares at a time

using PredicateKey = std::span<const std::uint64_t>;

struct PredicateHash {
    std::size_t operator()(PredicateKey key) const { return predicate_hash(key); }
};

struct EqualPredicates {
    bool operator()(PredicateKey a, PredicateKey b) const { return are_equal_predicates(a, b); }
};

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
    std::unordered_map<PredicateKey, std::uint32_t, PredicateHash, EqualPredicates> numbers;
    for (std::uint32_t q = 0; q < batch_.count; ++q) {
        const auto [number, added] = numbers.try_emplace(predicates.of(q), static_cast<std::uint32_t>(groups_.size()));
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
            !group.takes_all() && !searches_all &&
            is_compared(mirror_, group.count, group.terms(), first_query(batch), {group.queries.size(), batch.count});
        if (compared) {
            tasks.push_back({&group, group.queries});
        } else {
            searched_.push_back({&group, group.queries});
        }
    }
    if (may_miss(mirror_, tids_ != nullptr) && !searches_all) take_far_queries(batch, tasks);
    if (!searched_.empty()) {
        for (Task& task : searched_)
            if (!task.group->takes_all()) task.group->ways = task.group->ways | FilterWays::searched;
        tests_rows(mirror_, tids_ != nullptr) ? search_with_filters(batch, results) : search_by_groups(batch, results);
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

std::vector<RowFilter> FilteredSearch::filters_of(std::span<const std::uint32_t> numbers)
{
    std::vector<RowFilter> filters;
    for (const std::uint32_t q : numbers) filters.push_back(filter_of(groups_[group_of_[q]]));
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

}  // namespace pgwarp
