// Search keys of index paths that the planner of a release leaves to the executor: IN lists of columns behind the first
// (before 17), OR lists of one column (before 18), and booleans where it knows no boolean operator class; and all keys
// of paths that pgwarp makes itself.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Returns the same path with all keys that the index can evaluate; the path itself where it has these. A clause becomes
// a key only where PostgreSQL would make it one (security level, leakproof, collation).
IndexPath* with_added_keys(PlannerInfo* root, RelOptInfo* rel, IndexPath* path);

}  // namespace pgwarp
