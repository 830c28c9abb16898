// The order of KnnPartitions: that of Merge Append, but a scan is never begun if its answer lies beyond the wanted
// rows. Merge Append would fetch the scan's first row only to compare it; the answer already has that row's distance.
//
// The Merge Append is PostgreSQL's own node, which makes and ends its children, prunes them and begins them anew. Only
// its merging isn't used: KnnPartitions never executes it and takes the children's rows itself.
#pragma once

#include "postgres/scan/limit_hint.h"

namespace pgwarp
{

struct PartitionMerge;

// For a node that has just been made. Children of which partition_bound() knows nothing begin at once.
PartitionMerge* make_partition_merge(MergeAppendState* node, PartitionSearch* search);

// The next row: the one that ExecProcNode() on the Merge Append would return.
TupleTableSlot* next_merged_row(PartitionMerge* merge);

}  // namespace pgwarp
