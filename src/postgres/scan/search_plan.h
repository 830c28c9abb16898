// Plans searches: the number of results, the effort and the settings. Pure: changes nothing but the request.
#pragma once

#include "postgres/am/methods.h"
#include "postgres/client/index_state.h"

namespace pgwarp
{

// Whether a planned search reaches the target recall, by the index's calibration; if not, the best recall measured.
struct PlannedRecall {
    bool reached;
    double attained;
};

// Plans the method's own search for `wanted` rows.
PlannedRecall plan_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
// Plans the searches of the rungs that hold the first `wanted` rows of the query's sequence (protocol/rungs.h). The
// same as plan_normal_search() for a method without rungs.
PlannedRecall plan_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
// Whether searches with results of this kind go rung by rung.
bool has_rungs(bool complete, ResultKind kind);

}  // namespace pgwarp
