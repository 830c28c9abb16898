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

#include "numeric/metric.h"
#include "postgres/client/batch_search.h"
#include "postgres/executor/limit_hint.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
}

namespace pgwarp
{

// Installs the planner's hook and registers the node. Called by _PG_init.
void init_partition_search();

extern const CustomScanMethods partition_search_scan_methods;

// The path below a KnnPartitions; null for any other path.
Path* path_below_partition_search(const Path* path);

// What the scans share; null for any node but a KnnPartitions over a Merge Append.
PartitionSearch* partition_search_of(PlanState* node);
// The LIMIT that the node's rows go to as they are.
void limit_partition_search(PartitionSearch* search, const TupleBound& bound);
// Lets a scan that has not begun take part: numbers it in hint->partition, or takes hint->partitions away where it is
// not one of the Merge Append's, index-only, or ordered by another distance than those before it. In the order of the
// plan.
void add_partition_scan(PlanState* node, LimitHint* hint);

// Metric and dimensions of the scan's index, where its answer is there already.
bool partition_shape(const PartitionSearch* search, uint32 number, Metric* metric, uint32* dimensions);

// Whether no row of the Merge Append's child can be nearer than *bound, known from its answer.
bool partition_bound(const PartitionSearch* search, int child, double* bound);

// The answer for the scan of that number to its first search; null: it has to search alone.
const BatchAnswer* find_partition_answer(PartitionSearch* search, uint32 number, Metric metric, const float* query,
                                         uint32 dimensions);

}  // namespace pgwarp
