// One search: the method's answer over the rows of the index merged with the exact answer over the delta.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/mirror/mirror.h"

namespace pgwarp
{

// What searches must have in common to be answered as one batch.
struct SearchSettings {
    std::shared_ptr<Mirror> mirror;
    std::uint32_t k = 0;
    std::int64_t effort = 0;
    std::uint32_t earlier_count = 0;  // rungs below that of k and effort
    SearchRung earlier[max_rungs - 1] = {};
    ParameterList parameters;
    SearchMode mode = SearchMode::normal;
    SearchCursor after{};
    bool want_places = false;  // may differ within a batch
};
// Continuations are never put together: each has its own cursor.
bool can_share_batch(const SearchSettings& a, const SearchSettings& b);

struct SearchAnswer {
    std::vector<std::uint32_t> counts;  // per query
    std::vector<Result> results;        // of all queries, one after the other
    std::vector<std::uint64_t> places;  // of the results: ordinals as a cursor has them
    ResultKind kind = ResultKind::exact;
    double bound_width = 0;  // the widest of the queries'
    ParameterList resolved;
    std::shared_ptr<const MirrorSnapshot> snapshot;
};

// Where a continuation of one query goes on: behind the last of its own results; where it went on before when there are
// none, or their places weren't kept, as of requests that were cut, with many queries.
SearchCursor cursor_behind(std::span<const Result> results, std::span<const std::uint64_t> places,
                           const SearchCursor& before);

// Float operations that a query will take, about.
double estimate_cost(const SearchSettings& settings, const RowView& query);

// How many queries may be answered together so that what is found for them takes so many bytes, about; at least one.
std::size_t queries_within(const SearchSettings& settings, std::uint64_t bytes);
// What a thread keeps of a batch for the next one.
inline constexpr std::uint64_t most_kept_bytes = std::uint64_t{16} << 20;

// Answers queries, as check_query_rows() wants them, on the caller's thread and `pool`. Throws Cancelled, BadRequest,
// std::bad_alloc.
void run_search(const SearchSettings& settings, const RowView& queries, const CancelToken* cancel, ThreadPool& pool,
                SearchAnswer& answer);

}  // namespace pgwarp
