// Searches of queries with predicates, or among the rows of a bitmap, in an index and its delta. For each query one of
// these ways is taken, by cost: the rows that pass are compared, or the method's own search tests rows on its way.
// Where that finds fewer rows than pass, those are compared after all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/filter/filter_index.h"
#include "engine/filter/named_rows.h"
#include "engine/filter/query_predicates.h"
#include "engine/filter/tid_bitmap.h"
#include "engine/mirror/mirror.h"
#include "engine/search/delta_search.h"
#include "engine/search/search.h"
#include "methods/tested_rows.h"

namespace pgwarp
{

class FilteredSearch
{
public:
    // The arguments outlive this. tids: of the rows that all queries are for, besides; or null. batch: all queries; k
    // and effort are those of each search.
    FilteredSearch(Mirror& mirror, const MirrorSnapshot& snapshot, const QueryPredicates& predicates,
                   const TidBitmap* tids, const SearchBatch& batch, ThreadPool& pool);

    // results[i] gets the k nearest rows of the index for query i.
    void search(std::uint32_t k, std::int64_t effort, std::vector<std::vector<RowResult>>& results);
    // results[i] gets the k first rows after one in the order of continuations.
    void search_after(std::uint32_t k, const RowResult& after, std::vector<std::vector<RowResult>>& results);
    // found[i] gets the k nearest delta rows for query i.
    void search_delta(std::uint32_t k, std::vector<std::vector<Found>>& found);

    // How each query was answered by all these searches.
    std::vector<FilterOutcome> outcomes() const;

private:
    using Numbers = std::vector<std::uint32_t>;
    // Queries of equal predicates.
    struct Group {
        std::span<const std::uint64_t> predicate;  // empty: all rows pass, or all that are named
        std::unique_ptr<NamedRows> named;          // the rows with an address of the bitmap that pass the predicate
        Numbers queries;
        PassCount count;                 // by which ways are chosen
        std::uint64_t passing_rows = 0;  // of the index; known once these were compared
        std::uint64_t delta_rows = 0;    // of the delta, that pass
        FilterWays ways = FilterWays::none;

        bool takes_all() const { return predicate.empty() && named == nullptr; }
        // The terms by which rows are told apart; of named ones that is done.
        std::size_t terms() const { return predicate.empty() || named != nullptr ? 0 : predicate[0]; }
    };
    // Some queries of a group.
    struct Task {
        Group* group;
        Numbers queries;
    };
    using Results = std::vector<std::vector<RowResult>>;

    void make_groups(const QueryPredicates& predicates);
    void count_group(Group& group);
    std::unique_ptr<NamedRows> name_rows(std::span<const std::uint64_t> predicate);
    std::shared_ptr<const PassingRows> passing_of(const Group& group);
    std::shared_ptr<const FailingRows> failing_of(const Group& group);
    RowFilter filter_of(const Group& group);
    void search_with_filters(const SearchBatch& batch, Results& results);
    void search_by_groups(const SearchBatch& batch, Results& results);
    void take_far_queries(const SearchBatch& batch, std::vector<Task>& far);
    Numbers numbers_of(std::span<const Task> tasks) const;
    std::vector<RowFilter> filters_of(std::span<const std::uint32_t> numbers);
    std::vector<Task> unfinished(const SearchBatch& batch, const Results& results);
    void compare(const SearchBatch& batch, const RowResult& after, std::vector<Task>& tasks, Results& results);
    void compare_lists(const SearchBatch& batch, const RowResult& after, std::span<const Task> tasks, Results& results);
    void compare_tested(const SearchBatch& batch, std::span<const Task> tasks, const TestsAllRows& tester,
                        Results& results);
    void scan(const SearchBatch& batch, const RowResult& after, std::span<const Task> tasks, Results& results);

    Mirror& mirror_;
    const MirrorSnapshot& snapshot_;
    const TidBitmap* tids_;
    const SearchBatch& batch_;
    ThreadPool& pool_;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> group_of_;  // of each query
    std::vector<Task> searched_;           // by the method's own search, in the present search
};

}  // namespace pgwarp
