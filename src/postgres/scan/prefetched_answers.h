// Answers that were searched for before a scan asks: for the rows of a k-NN join, or for the scans of other partitions.
// They belong to nodes of the executor, which says here how a scan finds its own. A scan that finds none searches by
// itself.
#pragma once

#include "numeric/metric.h"
#include "postgres/client/batch_search.h"
#include "postgres/scan/limit_hint.h"

extern "C" {
#include "utils/snapshot.h"
}

namespace pgwarp
{

// The scan that asks.
struct AnsweredScan {
    PlanState* node;    // null when unknown
    PlanState* filter;  // the KnnFilter above it, or null
    Relation heap;      // null: it reads few rows of it, if any
    Snapshot snapshot;  // of the statement
    int64 limit;        // rows that the LIMIT above asks for
};

// Its query as the engine wants it.
struct ScanQuery {
    Metric metric;
    RowView row;
};

// The answers of a k-NN join in one index. They go on with the join; a scan may come back for more of its own.
struct JoinAnswers {
    uint32 taken;  // rows that the current scan took; the scan counts them
};

// How scans of statements find answers. Set once, by _PG_init.
struct PrefetchedAnswers {
    // The metric and dimensions of the index, where answers to the current row of a join in it, or of the partitions,
    // are there already.
    bool (*join_shape)(const EState* executor, Relation index, Metric* metric, uint32* dimensions);
    bool (*partition_shape)(const PartitionSearch* partitions, uint32 partition, Metric* metric, uint32* dimensions);
    // The answers of a join in the index that has one to this query; null: none.
    JoinAnswers* (*find_join)(const EState* executor, Relation index, const ScanQuery& query);
    // That answer, and the number of rows that it was searched for.
    const BatchAnswer* (*take)(JoinAnswers* answers, const AnsweredScan& scan, uint32* wanted);
    // The same with at least `wanted` rows; null when the join went on to another query.
    const BatchAnswer* (*deepen)(JoinAnswers* answers, const AnsweredScan& scan, const ScanQuery& query, uint32 wanted);
    // The answer for a scan of this number to its first search; null: it has to search alone.
    const BatchAnswer* (*find_partition)(PartitionSearch* partitions, uint32 partition, const ScanQuery& query);
};
extern PrefetchedAnswers prefetched_answers;

}  // namespace pgwarp
