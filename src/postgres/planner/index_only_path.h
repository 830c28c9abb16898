// Index-only scans in order of distance, for indexes with included columns.
//
// For the planner, every query that orders by the distance needs the vector, so it never finds that the included
// columns suffice. But the scan knows the distance. So the hook adds a path whose index, for this plan only, has the
// columns (key columns ..., distance, included columns ...): the vector cannot be returned, and the plan takes the
// expression `vector <-> query` from the distance's column, as PostgreSQL does with expressions of an index. The scan
// returns such tuples: see scan/scan_included.cpp. Columns to filter by have values in them only where the executor
// checks a row's keys again; to be returned they have to be included too. PostgreSQL itself sees an index that can
// return no column (no amcanreturn), because an index-only path of its own would expect tuples without the distance.
#pragma once

#include "postgres/postgres_headers.h"

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init.
void init_index_only_path();

}  // namespace pgwarp
