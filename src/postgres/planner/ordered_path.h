// Index paths that a pgwarp index can execute: those in order of one distance.
//
// PostgreSQL assumes that an index with ordering operators can order by several of them, and also makes paths without
// an order. The hook removes such paths, so that no setting can select them. It adds paths in the order of the query's
// first sort key: where that is a distance or an expression around one (distance_order.h), an incremental sort does
// the rest.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init, before the hooks that add paths of other kinds.
void init_ordered_path();

}  // namespace pgwarp
