// Preparing a search that is sent next. Beside its plan: a recall out of reach is reported, and a merge is started
// where the delta logs cost too much.
#pragma once

#include "postgres/scan/search_plan.h"

namespace pgwarp
{

// As plan_normal_search() and plan_rungs(). Each is a PrepareSearch.
void prepare_normal_search(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);
void prepare_rungs(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);

}  // namespace pgwarp
