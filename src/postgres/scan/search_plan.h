// Plans searches: how many results, with which effort and settings. Pure: nothing but the request is changed.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/client/index_state.h"

namespace pgwarp
{

// Whether a planned search reaches the recall asked for, as far as the index was measured; else the best measured.
struct PlannedRecall {
    bool reached;
    double attained;
};

// Describes a method's own search for `wanted` rows.
PlannedRecall plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
// Describes the search of the rungs on which the first `wanted` rows of the query's sequence lie (protocol/rungs.h), as
// far as the method has one; else the same as plan_normal_search().
PlannedRecall plan_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
// Whether searches of these results go rung by rung.
bool has_rungs(const MethodDescription& method, ResultKind kind);

}  // namespace pgwarp
