// The merge order of KnnPartitions: that of Merge Append, but a scan whose answer lies beyond the wanted rows never
// begins. Merge Append would fetch the scan's first row only to compare it; the answer already has that row's distance.
//
// The Merge Append is PostgreSQL's own node, which makes, ends, prunes and rescans its children. Only its merging is
// unused: KnnPartitions never executes it and takes the children's rows itself.
#pragma once

#include "postgres/scan/limit_hint.h"

namespace pgwarp
{

struct PartitionMerge;

// Makes the merge for an initialised node that has not run. Children without a partition_bound() begin at once,
// and all do unless the node sorts by the distance itself.
PartitionMerge* make_partition_merge(MergeAppendState* node, PartitionSearch* search, bool by_distance);

// Returns the row that ExecProcNode() on the Merge Append would return next.
TupleTableSlot* next_merged_row(PartitionMerge* merge);

}  // namespace pgwarp
