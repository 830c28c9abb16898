// Paths of KnnPartitions (executor/knn_partitions.h).
#pragma once

#include "postgres/postgres_headers.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_knn_partitions();

// Returns the path below a KnnPartitions; null for any other path.
Path* path_below_knn_partitions(const Path* path);

}  // namespace pgwarp
