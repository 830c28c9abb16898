// The engine's reply to a search with one query, and the bounds of distances that its results give.
#pragma once

#include <cmath>

#include "numeric/float32_distance.h"
#include "postgres/client/request_result.h"

namespace pgwarp
{

// The results of a search with one query.
struct SearchResults {
    const SearchReply* header;
    uint32 count;
    const Result* results;
    const uint64* places;  // of the results (place_source_shift), or null
    uint32 dropped;        // results left out because they don't pass the scan's filter
    uint32 passing;        // results that are known to pass it
};
// Parses a reply to a search with one query. Header and results are a palloc'ed copy. Raises an error for a malformed
// reply.
SearchResults read_search_reply(const EngineReply& reply);
// Frees that copy.
void free_search_reply(const SearchResults& results);

// What searches with predicates told, for EXPLAIN.
struct KeyedSearches {
    uint64 passing_rows;  // of the search with the most
    uint8 ways;           // FilterWays of all
};
// The names of a set of FilterWays, palloc'ed.
const char* name_ways(uint8 ways);
inline void note_keyed_search(KeyedSearches* noted, const SearchReply& reply)
{
    noted->passing_rows = Max(noted->passing_rows, reply.passing_rows);
    noted->ways |= static_cast<uint8>(reply.filter_ways);
}

inline constexpr double rounding_slack = 1e-11;  // relative rounding error of bounds
// The bounds of a result's canonical distance. bound_width is the reply's.
inline DistanceBounds bound_distance(const Result& result, ResultKind kind, double bound_width)
{
    const bool is_bound = kind != ResultKind::exact && std::isfinite(result.distance);
    const double slack = is_bound ? rounding_slack * (std::fabs(result.distance) + bound_width) : 0;
    return {result.distance - slack, result.distance + bound_width + slack};
}

}  // namespace pgwarp
