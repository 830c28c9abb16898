// The comparison of the rows that pass.
#include <algorithm>

#include "engine/search/filter_ways.h"
#include "engine/search/filtered_search.h"
#include "engine/search/picked_queries.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t most_listed = std::uint64_t{1} << 24;    // rows in lists that are made, at a time
constexpr std::uint64_t most_compared = std::uint64_t{1} << 28;  // rows that are compared, at a time

}  // namespace

void FilteredSearch::compare(const SearchBatch& batch, const RowResult& after, std::vector<Task>& tasks,
                             Results& results)
{
    if (!mirror_.searcher().compares_certain_rows()) return scan(batch, after, tasks, results);
    const auto* const tester = dynamic_cast<const TestsAllRows*>(&mirror_.searcher());
    if (after.distance == before_all.distance && tester != nullptr && tester->tests_all_rows(batch.k)) {
        const auto is_listed = [&](const Task& task) {
            return task.group->named != nullptr || !is_tested(mirror_, task.group->count);
        };
        const auto tested = std::stable_partition(tasks.begin(), tasks.end(), is_listed);
        if (tested != tasks.end()) compare_tested(batch, {tested, tasks.end()}, *tester, results);
        tasks.erase(tested, tasks.end());
    }
    for (std::size_t begin = 0; begin < tasks.size();) {
        std::size_t end = begin;
        std::uint64_t listed = 0;
        std::uint64_t compared = 0;
        for (; end < tasks.size() && listed < most_listed && compared < most_compared; ++end) {
            const Group& group = *tasks[end].group;
            if (group.named != nullptr || !is_stretch(group.predicate)) listed += group.count.listed;
            compared += group.count.listed * tasks[end].queries.size();
        }
        compare_lists(batch, after, std::span(tasks).subspan(begin, end - begin), results);
        begin = end;
    }
}

// Has all rows tested, and those that pass compared.
void FilteredSearch::compare_tested(const SearchBatch& batch, std::span<const Task> tasks, const TestsAllRows& tester,
                                    Results& results)
{
    for (const Task& task : tasks) task.group->ways = task.group->ways | FilterWays::scanned;
    const Numbers numbers = numbers_of(tasks);
    const std::vector<RowFilter> filters = filters_of(numbers);
    OwnedRows memory;
    SearchBatch picked = pick(batch, numbers, memory);
    picked.filters = filters;
    Results found(numbers.size());
    tester.search_passing(picked, found, pool_);
    for (std::size_t i = 0; i < numbers.size(); ++i) results[numbers[i]] = std::move(found[i]);
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

}  // namespace pgwarp
