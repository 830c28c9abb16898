// The rows that a KnnBatch reads together, and their queries.
#include "postgres/am/distance_bound.h"
#include "postgres/executor/knn_batch_state.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
}

namespace pgwarp
{

RowBatch* make_row_batch(const KnnBatchState* state, EState* executor)
{
    auto* batch = static_cast<RowBatch*>(palloc0(sizeof(RowBatch)));
    batch->context = AllocSetContextCreate(executor->es_query_cxt, "KnnBatch", ALLOCSET_DEFAULT_SIZES);
    batch->queries = static_cast<QueryRows*>(palloc0(sizeof(QueryRows) * state->cache_count));
    return batch;
}

void clear_rows(RowBatch* batch)
{
    MemoryContextReset(batch->context);
    batch->rows = nullptr;
    batch->row_count = 0;
    batch->query_count = 0;
    batch->predicates = nullptr;
    batch->within = -no_bound;
    batch->ahead = {};
}

TupleTableSlot* read_outer_row(KnnBatchState* state)
{
    if (state->ended) return nullptr;
    TupleTableSlot* slot = ExecProcNode(state->child);
    state->ended = TupIsNull(slot);
    if (state->ended) return nullptr;
    state->rows_now++;
    state->rows_read++;
    return slot;
}

TupleTableSlot* store_row(KnnBatchState* state, const BatchRow& row)
{
    return ExecStoreMinimalTuple(row.tuple, state->custom.ss.ss_ScanTupleSlot, false);
}

namespace
{

// Read up to `width` rows of the outer side, the first of which was read already. Two batches exist at a time, so each
// may use half of work_mem.
void read_rows(KnnBatchState* state, TupleTableSlot* slot, uint32 width, RowBatch* batch)
{
    const Size most_bytes = static_cast<Size>(work_mem) * 1024 / 2;
    Size bytes = 0;
    batch->rows = static_cast<BatchRow*>(MemoryContextAlloc(batch->context, sizeof(BatchRow) * width));
    while (slot != nullptr) {
        MemoryContext outer = MemoryContextSwitchTo(batch->context);
        BatchRow& row = batch->rows[batch->row_count++];
        row.tuple = ExecCopySlotMinimalTuple(slot);
        row.query = no_query;
        bytes += row.tuple->t_len;
        MemoryContextSwitchTo(outer);
        slot = batch->row_count < width && bytes < most_bytes ? read_outer_row(state) : nullptr;
    }
}

// Evaluate the bound for the row of the expression context; false where it is null, so that no row passes.
bool take_row_bound(const KnnBatchState* state, RowBatch* batch)
{
    if (state->within == nullptr) {
        batch->within = no_bound;
        return true;
    }
    bool is_null = false;
    const Datum value = ExecEvalExpr(state->within, state->custom.ss.ps.ps_ExprContext, &is_null);
    if (is_null) return false;
    batch->within = Max(batch->within, bound_as_double(value, exprType(reinterpret_cast<Node*>(state->within->expr))));
    return true;
}

// Evaluate the search keys for the row of the expression context; false where no row passes them. The predicate is that
// of the batch's next query.
bool take_row_keys(const KnnBatchState* state, RowBatch* batch)
{
    if (state->keys == nullptr) return true;
    const FilterKeys keys = read_batch_keys(state->keys, state->caches[0].index, state->custom.ss.ps.ps_ExprContext);
    if (keys.none || keys.null_vectors) return false;
    const Size bytes = sizeof(uint64) * keys.word_count;
    auto* words = static_cast<uint64*>(MemoryContextAlloc(batch->context, Max(bytes, sizeof(uint64))));
    if (bytes > 0) memcpy(words, keys.words, bytes);
    batch->predicates[batch->query_count] = {words, keys.word_count};
    return keys.word_count > 0;
}

// Evaluate the query of one row. A null or zero vector gives no query; a vector of other dimensions, or a text that
// is too long, is left to the scan, which raises the error.
void take_row_query(KnnBatchState* state, RowBatch* batch, BatchRow* row)
{
    ExprContext* context = state->custom.ss.ps.ps_ExprContext;
    ResetExprContext(context);
    context->ecxt_scantuple = store_row(state, *row);
    MemoryContext outer = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
    bool is_null = false;
    const Datum value = ExecEvalExpr(state->query, context, &is_null);
    const bool asks = !is_null && take_row_bound(state, batch) && take_row_keys(state, batch);
    const RowView query = asks ? view_query(state->key, value, state->length) : RowView{};
    for (uint32 i = 0; query.count > 0 && i < state->cache_count; ++i) {
        const Metric metric = state->caches[i].metric;
        if (put_query(&batch->queries[i], batch->query_count, metric, query)) row->query = batch->query_count;
    }
    if (row->query != no_query) batch->query_count++;
    MemoryContextSwitchTo(outer);
}

void take_queries(KnnBatchState* state, RowBatch* batch)
{
    MemoryContext outer = MemoryContextSwitchTo(batch->context);
    for (uint32 i = 0; i < state->cache_count; ++i) {
        batch->queries[i] = make_query_rows(state->key.element, state->caches[i].dimensions, batch->row_count);
    }
    if (state->keys != nullptr) {
        batch->predicates = static_cast<QueryPredicate*>(palloc0(sizeof(QueryPredicate) * batch->row_count));
    }
    MemoryContextSwitchTo(outer);
    for (uint32 i = 0; i < batch->row_count; ++i) take_row_query(state, batch, &batch->rows[i]);
}

}  // namespace

void collect_rows(KnnBatchState* state, TupleTableSlot* first, uint32 width, RowBatch* batch)
{
    clear_rows(batch);
    read_rows(state, first, width, batch);
    if (batch->row_count == 1) return;  // a single search is left to the scan
    state->batches++;
    take_queries(state, batch);
}

RowView queries_of(const RowBatch& batch, uint32 cache)
{
    RowView queries = batch.queries[cache].rows;
    queries.count = batch.query_count;
    return queries;
}

}  // namespace pgwarp
