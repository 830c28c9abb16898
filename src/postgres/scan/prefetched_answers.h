// Answers of searches that ran before a scan asks: for the rows of a k-NN join, or for the scans of other partitions.
// They belong to executor nodes, which give the functions here so that a scan finds its answer. A scan that finds none
// searches by itself.
#pragma once

#include "numeric/metric.h"
#include "postgres/client/batch_search.h"
#include "postgres/scan/limit_hint.h"

extern "C" {
#include "access/skey.h"
#include "utils/snapshot.h"
}

namespace pgwarp
{

// The scan that takes an answer.
struct AnsweredScan {
    PlanState* node;    // null when unknown
    PlanState* filter;  // the KnnFilter above it, or null
    Relation heap;      // null when the scan reads few or no rows of it
    Snapshot snapshot;  // of the statement
    int64 limit;        // rows that the LIMIT above reads
};

// The scan's query as the engine takes it.
struct ScanQuery {
    Metric metric;
    RowView row;
    double within;  // the largest distance of interest
    QueryPredicate predicate;
};

// The answers of a k-NN join in one index. The current answer changes when the join goes on to another row. A scan may
// take deeper answers from them.
struct JoinAnswers {
    uint32 taken;  // rows that the current scan has returned; the scan counts them
};

// The functions by which scans find answers. Set once, by _PG_init.
struct PrefetchedAnswers {
    // The metric and dimensions of the index, if there are already answers for the current row of a join, or for
    // the partitions. Saves reading the metapage.
    bool (*join_shape)(const EState* executor, Relation index, Metric* metric, uint32* dimensions);
    bool (*partition_shape)(const PartitionSearch* partitions, uint32 partition, Metric* metric, uint32* dimensions);
    // Tells a join that searches this index of the keys with which a scan begins.
    void (*note_keys)(const EState* executor, Relation index, const ScanKeyData* keys, int count);
    // The answers of the join that searched this index for this query; null when there is none.
    JoinAnswers* (*find_join)(const EState* executor, Relation index, const ScanQuery& query);
    // The answer of the join for the query, and the number of rows that it was searched for.
    const BatchAnswer* (*take)(JoinAnswers* answers, const AnsweredScan& scan, uint32* wanted);
    // An answer of at least `wanted` rows; null when the join went on to another query.
    const BatchAnswer* (*deepen)(JoinAnswers* answers, const AnsweredScan& scan, const ScanQuery& query, uint32 wanted);
    // The answer for the partition of this number to the first search of its scan; null when the scan must search
    // by itself.
    const BatchAnswer* (*find_partition)(PartitionSearch* partitions, uint32 partition, const ScanQuery& query);
};
extern PrefetchedAnswers prefetched_answers;

}  // namespace pgwarp
