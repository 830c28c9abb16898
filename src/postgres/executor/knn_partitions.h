// KnnPartitions: the custom scan above a Merge Append over index scans of ours, as ORDER BY ... LIMIT over a
// partitioned table has them. The first of the scans that asks for its rows has all of them searched for by one
// request; each finds its answer there, and those whose answers are too far don't begin (partition_merge.h). The scans,
// filters, pruning and visibility stay PostgreSQL's own. The same goes for a UNION ALL and for inheritance.
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

// The search that the scans share; null for any node but a KnnPartitions over a Merge Append.
PartitionSearch* partition_search_of(PlanState* node);
// Tells such a node of the LIMIT that its rows go to as they are.
void limit_knn_partitions(PlanState* node, const TupleBound& bound);

}  // namespace pgwarp
