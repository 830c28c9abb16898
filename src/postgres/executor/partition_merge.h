// The order below KnnPartitions: Merge Append's, but a scan whose answer lies beyond the rows that are asked for is
// never begun. All that Merge Append would fetch of it is a row to compare; its answer tells as much.
#pragma once

#include "postgres/executor/limit_hint.h"

namespace pgwarp
{

// Has the node merge its children that way. Those of which partition_bound() knows nothing begin at once.
void merge_by_bounds(MergeAppendState* merge, PartitionSearch* search);

}  // namespace pgwarp
