// The engine's reply to a search with one query, and the distances that its results bound.
#pragma once

#include "postgres/client/request_result.h"

namespace pgwarp
{

struct SearchResults {
    SearchReply header;
    uint32 count;
    const Result* results;
    const uint64* places;  // of the results, or null
    uint32 dropped;        // results that aren't there because the scan's filter wouldn't let them through
};
// The results of a reply to a search with one query, palloc'ed.
SearchResults read_search_reply(const EngineReply& reply);

// A row's distance lies in [lower, upper].
struct DistanceBounds {
    double lower;
    double upper;
};
// The bounds that a result gives. bound_width: of the reply.
DistanceBounds bound_distance(const Result& result, ResultKind kind, double bound_width);

}  // namespace pgwarp
