// One search: the method's answer over the rows of the index merged with the exact answer over the delta.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/filter/query_predicates.h"
#include "engine/filter/tid_bitmap.h"
#include "engine/mirror/mirror.h"

namespace pgwarp
{

// Settings that searches must share to be answered as one batch.
struct SearchSettings {
    std::shared_ptr<Mirror> mirror;
    std::uint32_t k = 0;
    std::int64_t effort = 0;
    std::uint32_t earlier_count = 0;  // rungs below that of k and effort
    SearchRung earlier[max_rungs - 1] = {};
    ParameterList parameters;
    SearchMode mode = SearchMode::normal;
    SearchCursor after{};
    bool want_places = false;               // may differ within a batch
    std::shared_ptr<const TidBitmap> tids;  // only rows that have one of these addresses; null: all rows
};
// Continuations never share a batch: each has its own cursor.
bool can_share_batch(const SearchSettings& a, const SearchSettings& b);

// The queries of a search; it does not own them.
struct SearchQueries {
    // predicates: of each query; null or empty: none has one.
    SearchQueries(const RowView& queries, const QueryPredicates* of_queries = nullptr)
        : rows(queries), predicates(of_queries != nullptr && !of_queries->empty() ? of_queries : nullptr)
    {
    }
    RowView rows;
    const QueryPredicates* predicates;
};

// How a query with a predicate or a bitmap was answered.
struct FilterOutcome {
    std::uint64_t passing_rows = 0;  // as in SearchReply
    FilterWays ways = FilterWays::none;

    void add(const FilterOutcome& other)
    {
        passing_rows = std::max(passing_rows, other.passing_rows);
        ways = ways | other.ways;
    }
};

struct SearchAnswer {
    std::vector<std::uint32_t> counts;    // per query
    std::vector<Result> results;          // of all queries, one after the other
    std::vector<std::uint64_t> places;    // of the results: ordinals as a cursor has them
    std::vector<FilterOutcome> filtered;  // per query; empty where none has a predicate
    ResultKind kind = ResultKind::exact;
    double bound_width = 0;  // the widest of the queries'
    ParameterList resolved;
    std::shared_ptr<const MirrorSnapshot> snapshot;
};

// The cursor with which one query continues: behind the last of its results; `before` when there are none, or when
// their places were not kept, as in requests that were cut.
SearchCursor cursor_behind(std::span<const Result> results, std::span<const std::uint64_t> places,
                           const SearchCursor& before);

// Joins the outcomes of some queries of an answer.
FilterOutcome filtered_of(const SearchAnswer& answer, std::size_t first, std::size_t count);

// Estimated float operations of a query, the longest of these, with the costliest of some predicates.
double estimate_cost(const SearchSettings& settings, const SearchQueries& queries);

// The number of queries, at least 1, whose results take about `bytes` when they are answered together.
std::size_t queries_within(const SearchSettings& settings, std::uint64_t bytes);
// Bytes of results up to which a thread keeps the buffers of a batch for the next one.
inline constexpr std::uint64_t most_kept_bytes = std::uint64_t{16} << 20;

// Answers queries that have passed check_query_rows(), on the caller's thread and `pool`. Throws Cancelled, BadRequest,
// std::bad_alloc.
void run_search(const SearchSettings& settings, const SearchQueries& queries, const CancelToken* cancel,
                ThreadPool& pool, SearchAnswer& answer);

}  // namespace pgwarp
