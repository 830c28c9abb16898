// The scans under a KnnPartitions, and the answers that one request fetches for all of them.
#pragma once

#include "postgres/client/index_searches.h"
#include "postgres/scan/prefetched_answers.h"
#include "postgres/scan/search_reply.h"

extern "C" {
#include "nodes/execnodes.h"
}

namespace pgwarp
{

// One scan under the Merge Append.
struct PartitionScan {
    IndexScanState* scan;
    int plan;  // position among the Merge Append's children
    LimitHint hint;
    const BatchAnswer* answer;
};

// The shared search of one Merge Append.
struct PartitionSearch {
    const EState* executor;
    MergeAppendState* merge;
    PartitionScan* scans;
    uint32 count;
    const PartitionScan** scan_of_child;  // [children]; null: the child is another kind of node
    MemoryContext context;                // of the answers
    RowView query;                        // that the answers are for; without a row: none yet
    QueryPredicate predicate;             // of the query
    Metric metric;
    uint32 dimensions;  // of the indexes
    double within;      // the largest distance that the answers are for
    uint64 hits;
    IndexSearchCounts counts;
    KeyedSearches keyed;
};

// Makes a search in the current memory context; the answers lie in the query's memory.
PartitionSearch* make_partition_search(MergeAppendState* merge, EState* executor);
// Forgets the query and its answers.
void forget_partition_answers(PartitionSearch* search);

// Lets a scan that has not begun take part, and numbers it in hint->partition. Clears hint->partitions if the scan is
// not a child of the Merge Append, is index-only, or is ordered by another distance than the scans before it. To be
// called in the order of the plan. Scans that take part have the same keys.
void add_partition_scan(PlanState* node, LimitHint* hint);

// Returns the metric and the dimensions of the scan's index if its answer has been fetched.
bool partition_shape(const PartitionSearch* search, uint32 number, Metric* metric, uint32* dimensions);

// Returns true when the child's answer gives a bound: then no row of the child is nearer than *bound.
bool partition_bound(const PartitionSearch* search, int child, double* bound);

// Returns the answer to the first search of the scan with that number; null: the scan searches by itself.
const BatchAnswer* find_partition_answer(PartitionSearch* search, uint32 number, const ScanQuery& query);

}  // namespace pgwarp
