// Index paths that a pgwarp index can execute: those in order of one distance.
//
// PostgreSQL assumes that an index with ordering operators orders by any number of them, and makes paths without an
// order too. The hook removes such paths, so that no setting brings them back. Where a query orders by a distance and
// then by another one, a path in order of the first takes their place: an incremental sort does the rest.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init, before the hooks that add paths of other kinds.
void init_ordered_path();

}  // namespace pgwarp
