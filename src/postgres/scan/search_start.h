// Prepares a search that is sent at once. Besides planning it reports a recall out of reach, and starts a merge when
// the delta logs cost too much.
#pragma once

#include "postgres/scan/search_plan.h"

namespace pgwarp
{

// Like plan_normal_search() and plan_rungs(). Each is a PrepareSearch.
void prepare_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
void prepare_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);

}  // namespace pgwarp
