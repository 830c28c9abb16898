// The scans under a KnnPartitions, and the answers that one request has fetched for all of them.
#pragma once

#include "postgres/client/index_searches.h"
#include "postgres/scan/prefetched_answers.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// One scan under the Merge Append.
struct PartitionScan {
    IndexScanState* scan;
    int plan;  // its position among the Merge Append's
    LimitHint hint;
    const BatchAnswer* answer;
};

struct PartitionSearch {
    const EState* executor;
    MergeAppendState* merge;
    PartitionScan* scans;
    uint32 count;
    const PartitionScan** scan_of_child;  // null: something else
    MemoryContext context;                // of the answers
    RowView query;                        // that they are for; no row: none yet
    Metric metric;
    uint32 dimensions;  // of the indexes
    uint64 hits;
    IndexSearchCounts counts;
};

// In the current memory context; answers lie in the memory of the query.
PartitionSearch* make_partition_search(MergeAppendState* merge, EState* executor);
// Forgets the query and the answers to it.
void forget_partition_answers(PartitionSearch* search);

// Lets a scan that has not begun take part: numbers it in hint->partition, or takes hint->partitions away where it is
// not one of the Merge Append's, index-only, or ordered by another distance than those before it. In the order of the
// plan.
void add_partition_scan(PlanState* node, LimitHint* hint);

// Metric and dimensions of the scan's index, where its answer is there already.
bool partition_shape(const PartitionSearch* search, uint32 number, Metric* metric, uint32* dimensions);

// Whether no row of the Merge Append's child can be nearer than *bound, known from its answer.
bool partition_bound(const PartitionSearch* search, int child, double* bound);

// The answer for the scan of that number to its first search; null: it has to search alone.
const BatchAnswer* find_partition_answer(PartitionSearch* search, uint32 number, const ScanQuery& query);

}  // namespace pgwarp
