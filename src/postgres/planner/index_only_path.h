// Index-only scans in order of distance, for indexes with included columns.
//
// The planner takes the vector for needed by every query that orders by its distance, and so never finds that the
// included columns are enough. But the scan knows the distance. So we add a path whose index, as far as this plan is
// concerned, has the columns (vector, distance, included columns ...): the vector can't be returned, and the plan takes
// the expression `vector <-> query` from the distance's column, as PostgreSQL does with the expressions that an index
// is made of. The scan returns such tuples: see scan/scan_included.cpp. PostgreSQL itself is told that no column can
// be returned (no amcanreturn): an index-only path of its own making would expect tuples without the distance.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init.
void init_index_only_path();

}  // namespace pgwarp
