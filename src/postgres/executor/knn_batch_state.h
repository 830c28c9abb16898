// The state of a KnnBatch node in execution, which its files share: knn_batch.cpp (the node), knn_batch_rows.cpp (its
// rows and their queries), knn_batch_explain.cpp.
#pragma once

#include "postgres/postgres_headers.h"

#include "postgres/am/element_type.h"
#include "postgres/executor/answer_cache.h"
#include "postgres/executor/knn_batch_keys.h"
#include "postgres/executor/knn_batch_plan.h"
#include "postgres/scan/query_value.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

namespace pgwarp
{

struct BatchRow {
    MinimalTuple tuple;
    uint32 query;  // position in the caches' batch, or no_query
};

// Rows read together, and their queries.
struct RowBatch {
    MemoryContext context;
    BatchRow* rows;
    uint32 row_count;
    QueryRows* queries;          // for each cache [query_count]
    QueryPredicate* predicates;  // [query_count]; null where the scans have no keys
    uint32 query_count;
    double within;     // the largest distance of interest to any of them
    BatchAhead ahead;  // the search, if it was begun while the batch before was joined
};

struct KnnBatchState {
    CustomScanState custom;
    KnnBatchPlan plan;
    PlanState* child;
    ExprState* query;
    KeyType key;      // of all indexes
    BatchKeys* keys;  // of the scans; null: they have none
    ExprState* limit;
    ExprState* offset;
    ExprState* within;    // null: the searches have no bound
    bool prepared;        // the fields up to next_row are set
    AnswerCache* caches;  // one for each index
    uint32 cache_count;
    int length;  // query_length() of all indexes; -1 when they differ: then no query is searched for ahead
    RowBatch* current;
    RowBatch* next;  // read while the current batch is joined, and searched for by the engine meanwhile
    uint32 next_row;
    uint32 width;       // of the next batch; 1: the next row passes alone, and its scan searches for it
    uint32 most;        // largest width; 1: all rows pass alone
    uint32 lost_ahead;  // begun batches whose answers were lost
    bool ended;
    uint64 rows_now;  // of this execution
    uint64 batches;
    uint64 rows_read;
};

// Returns the next row of the outer side; null after the last one.
TupleTableSlot* read_outer_row(KnnBatchState* state);
// Put a row of a batch into the node's slot.
TupleTableSlot* store_row(KnnBatchState* state, const BatchRow& row);
RowBatch* make_row_batch(const KnnBatchState* state, EState* executor);
void clear_rows(RowBatch* batch);
// Collect up to `width` rows, whose first was read already, and their queries, unless it is the only row.
void collect_rows(KnnBatchState* state, TupleTableSlot* first, uint32 width, RowBatch* batch);
// Returns the queries of a batch for one of the caches.
RowView queries_of(const RowBatch& batch, uint32 cache);

void explain_knn_batch(const KnnBatchState* state, ExplainState* explanation);

}  // namespace pgwarp
