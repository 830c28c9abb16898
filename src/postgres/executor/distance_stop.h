// DistanceStop: the custom scan above an index scan of ours whose rows are also bounded in distance,
//   WHERE v <-> q < r ORDER BY v <-> q
// Rows come nearest first, so the first one beyond r is the end: a filter would go on through the whole index.
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_distance_stop();

// The path below a DistanceStop; null for any other path.
Path* path_below_distance_stop(Path* path);
bool is_distance_stop(const PlanState* node);

}  // namespace pgwarp
