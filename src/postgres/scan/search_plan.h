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
// Whether `rows` rows of an approximate index are its last placed rows, or so many that rows which its searches find
// late may be missing at their end. Only an exact search from the first row on returns them all. False if the method's
// own search finds all rows.
bool reads_to_end(Relation index, const IndexState& state, uint64 rows);

}  // namespace pgwarp
