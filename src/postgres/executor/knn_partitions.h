// KnnPartitions: the custom scan above a Merge Append over scans of pgwarp indexes, as in ORDER BY ... LIMIT over a
// partitioned table. The first scan to begin sends one request for all scans; each then takes its own answer, and a
// scan whose answer is too far never begins (partition_merge.h). PostgreSQL executes the scans, filters, pruning and
// visibility checks. A UNION ALL and inheritance work in the same way.
//
//   Limit
//     ->  Custom Scan (KnnPartitions)
//           ->  Merge Append
//                 ->  Index Scan using ... Order By: (v <-> ...)
//                 ->  ...
#pragma once

#include "postgres/scan/limit_hint.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

namespace pgwarp
{

extern const CustomScanMethods knn_partitions_scan_methods;

// The node's settings in its plan. by_distance: its rows are sorted by the distance itself, ascending, NULLs last.
List* knn_partitions_private(bool by_distance);

// Returns the search that the scans share; null for any node but a KnnPartitions over a Merge Append.
PartitionSearch* partition_search_of(PlanState* node);
// Tells such a node about the LIMIT that its rows reach unfiltered.
void limit_knn_partitions(PlanState* node, const TupleBound& bound);

}  // namespace pgwarp
