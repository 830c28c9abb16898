// The executor's side of KnnBatch: reads outer rows in batches, has their queries searched for, and returns the rows.
#include "postgres/executor/knn_batch.h"

#include "postgres/am/element_type.h"
#include "postgres/am/methods.h"
#include "postgres/client/index_state.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/executor/knn_batch_state.h"
#include "postgres/settings.h"

extern "C" {
#include "executor/executor.h"
#include "storage/predicate.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 ramp_factor = 8;      // growth of the width from batch to batch, up to state->most
constexpr uint32 most_lost_ahead = 2;  // begun batches whose answers were lost, after which none is begun
constexpr uint32 unlimited_rows = 64;  // wanted from the first search of a scan without LIMIT

KnnBatchState* state_of(CustomScanState* node)
{
    return reinterpret_cast<KnnBatchState*>(node);
}

Node* create_state(CustomScan*);
void begin(CustomScanState* node, EState* executor, int flags);
TupleTableSlot* execute(CustomScanState* node);
void end(CustomScanState* node);
void rescan_batch(CustomScanState* node);
void explain(CustomScanState* node, List* ancestors, ExplainState* explanation);

const CustomExecMethods methods = make_custom_methods({"KnnBatch", begin, execute, end, rescan_batch, explain});

Node* create_state(CustomScan*)
{
    return make_custom_state<KnnBatchState>(&methods);
}

// Rows are stored as minimal tuples, so the node returns a slot of that kind, which is deformed only as far as needed.
// Expressions that were compiled for other slots are compiled again.
void use_minimal_slot(KnnBatchState* state, EState* executor)
{
    ::ScanState& scan = state->custom.ss;
#if PG_VERSION_NUM >= 190000
    ExecInitScanTupleSlot(executor, &scan, scan.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsMinimalTuple, 0);
#else
    ExecInitScanTupleSlot(executor, &scan, scan.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
#endif
    scan.ps.subPlan = NIL;
    ExecAssignScanProjectionInfoWithVarno(&scan, INDEX_VAR);
    scan.ps.qual = ExecInitQual(scan.ps.plan->qual, &scan.ps);
}

// A plan may be older than the present value of pgwarp.knn_batch. EvalPlanQual rechecks single rows.
uint32 widest_allowed(const KnnBatchState* state, const EState* executor)
{
    if (!setting_knn_batch || state->plan.alone || executor->es_epq_active != nullptr) return 1;
    return Max(1U, static_cast<uint32>(setting_batch_size) / Max(1U, state->cache_count));
}

void begin(CustomScanState* node, EState* executor, int flags)
{
    KnnBatchState* state = state_of(node);
    auto* scan = castNode(CustomScan, node->ss.ps.plan);
    state->plan = read_knn_batch_plan(scan);
    state->child = ExecInitNode(static_cast<Plan*>(linitial(scan->custom_plans)), executor, flags);
    node->custom_ps = list_make1(state->child);
    use_minimal_slot(state, executor);
    state->query = ExecInitExpr(state->plan.query, &node->ss.ps);
    Relation index = index_open(linitial_oid(state->plan.indexes), AccessShareLock);
    state->key = index_key_type(index);
    state->keys = prepare_batch_keys(state->plan, index, &node->ss.ps);
    index_close(index, NoLock);
    state->limit = ExecInitExpr(state->plan.limit, &node->ss.ps);
    state->offset = ExecInitExpr(state->plan.offset, &node->ss.ps);
    const bool bounded = !IsA(state->plan.within, Const) || !castNode(Const, state->plan.within)->constisnull;
    state->within = bounded ? ExecInitExpr(state->plan.within, &node->ss.ps) : nullptr;
    state->cache_count = static_cast<uint32>(list_length(state->plan.indexes));
    state->width = 1;
    state->most = widest_allowed(state, executor);
}

int64 evaluate_count(KnnBatchState* state, ExprState* expression, int64 otherwise)
{
    bool is_null = false;
    ExprContext* context = state->custom.ss.ps.ps_ExprContext;
    const Datum value = ExecEvalExprSwitchContext(expression, context, &is_null);
    return is_null ? otherwise : Max(int64{0}, DatumGetInt64(value));
}

// Returns the rows that the first searches want: the same number as the inner scan's own search would want.
uint32 first_wanted(KnnBatchState* state)
{
    const int64 limit = evaluate_count(state, state->limit, -1);
    if (limit < 0) return unlimited_rows;
    const int64 rows = Max(int64{1}, Min(limit + evaluate_count(state, state->offset, 0), int64{max_k}));
    if (!state->plan.filtered) return static_cast<uint32>(rows);
    // A deeper search for texts compares many more of them, one for vectors few more.
    const int64 least = is_list(state->key.element) ? 1 : int64{unlimited_rows};
    return static_cast<uint32>(Min(Max(rows * 2, least), int64{max_k}));
}

void prepare_cache(KnnBatchState* state, AnswerCache* cache, Oid index, uint32 wanted)
{
    EState* executor = state->custom.ss.ps.state;
    cache->executor = executor;
    cache->index = index_open(index, AccessShareLock);
    cache->method = &access_method_of(cache->index);
    const IndexShape shape = read_metapage(cache->index).shape;
    cache->metric = static_cast<Metric>(shape.metric);
    cache->dimensions = shape.dimensions;
    cache->wanted = wanted;
    cache->next_wanted = wanted;
    cache->least_wanted = wanted;
    cache->within = no_bound;
    cache->is_filtered = state->plan.filtered;
    cache->noted_keys = takes_values_of_scan(state->keys) ? state->keys : nullptr;
    cache->current = no_query;
    cache->near_query = no_query;
    // Like the scan of an index whose access method has no predicate locks: before the index is read.
    PredicateLockRelation(cache->index, executor->es_snapshot);
    register_answer_cache(cache);
}

// The first batch opens the indexes.
void prepare(KnnBatchState* state)
{
    EState* executor = state->custom.ss.ps.state;
    MemoryContext outer = MemoryContextSwitchTo(executor->es_query_cxt);
    state->current = make_row_batch(state, executor);
    state->next = make_row_batch(state, executor);
    state->caches = static_cast<AnswerCache*>(palloc0(sizeof(AnswerCache) * state->cache_count));
    const uint32 wanted = first_wanted(state);
    for (uint32 i = 0; i < state->cache_count; ++i) {
        AnswerCache* cache = &state->caches[i];
        prepare_cache(state, cache, list_nth_oid(state->plan.indexes, static_cast<int>(i)), wanted);
        const int length = query_length(state->key.element, cache->index);
        state->length = i == 0 || state->length == length ? length : -1;
    }
    state->prepared = true;
    MemoryContextSwitchTo(outer);
}

// Returns the largest width: with one index limited to one request, so that the batch can be begun ahead.
uint32 widest_batch(const KnnBatchState* state)
{
    return state->cache_count > 1 ? state->most : Min(state->most, most_queries_ahead(state->caches[0]));
}

// Collect a batch whose first row was read already; the next one is wider.
void collect_next(KnnBatchState* state, TupleTableSlot* first, RowBatch* batch)
{
    collect_rows(state, first, Min(state->width, widest_batch(state)), batch);
    state->width = Min(state->width * ramp_factor, state->most);
}

// Get the answers to the current batch.
void answer_rows(KnnBatchState* state)
{
    RowBatch* batch = state->current;
    for (uint32 i = 0; i < state->cache_count; ++i) {
        AnswerCache& cache = state->caches[i];
        cache.context = batch->context;
        cache.queries = queries_of(*batch, i);
        cache.count = batch->query_count;
        cache.within = batch->within;
        cache.predicates = batch->predicates;
    }
    if (batch->query_count == 0) return;
    if (state->caches[0].ahead == nullptr) {
        fill_answer_caches(state->caches, state->cache_count);
    } else if (!take_next_batch(&state->caches[0])) {
        state->lost_ahead++;
    }
}

// Once batches have their full width, the engine searches for the next batch while the rows of the current one are
// joined. With several indexes it does not, because their requests would take turns anyway.
bool works_ahead(const KnnBatchState* state)
{
    return state->cache_count == 1 && state->most > 1 && state->lost_ahead < most_lost_ahead &&
           state->width >= widest_batch(state);
}

// Forget the answers to the joined rows.
void forget_answers(KnnBatchState* state)
{
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) reset_answer_cache(&state->caches[i]);
}

// Make the engine search for the next batch while the rows of the current one are joined.
void begin_ahead(KnnBatchState* state)
{
    RowBatch* next = state->next;
    if (next->query_count == 0) return;
    begin_next_batch(&state->caches[0], queries_of(*next, 0), next->predicates, next->within, &next->ahead,
                     next->context);
}

// Get the next batch: its rows, their queries and answers. False after the last row.
bool read_batch(KnnBatchState* state)
{
    forget_answers(state);
    if (state->prepared && state->next->row_count > 0) {
        RowBatch* done = state->current;
        state->current = state->next;
        state->next = done;
        clear_rows(done);
    } else {
        TupleTableSlot* first = read_outer_row(state);
        if (first == nullptr) return false;
        if (!state->prepared) prepare(state);
        collect_next(state, first, state->current);
    }
    state->next_row = 0;
    if (works_ahead(state)) {
        TupleTableSlot* first = read_outer_row(state);
        if (first != nullptr) collect_next(state, first, state->next);
    }
    answer_rows(state);
    begin_ahead(state);
    return true;
}

// Pass on a row alone: the first of an outer side, which may be the only one, or rows before any scan has begun whose
// keys are needed.
TupleTableSlot* next_single_row(KnnBatchState* state)
{
    TupleTableSlot* out = state->custom.ss.ss_ScanTupleSlot;
    forget_answers(state);
    TupleTableSlot* slot = read_outer_row(state);
    if (slot == nullptr) return ExecClearTuple(out);
    if (!state->prepared && state->most > 1 && takes_values_of_scan(state->keys)) prepare(state);
    state->width = Min(ramp_factor, state->most);
    return ExecCopySlot(out, slot);
}

// Returns the next row; an empty slot after the last one.
TupleTableSlot* next_row(KnnBatchState* state)
{
    const bool any = state->prepared && state->next_row < state->current->row_count;
    if (!any) {
        ExecClearTuple(state->custom.ss.ss_ScanTupleSlot);
        if (state->width == 1 || awaits_scan(state->keys)) return next_single_row(state);
        if (!read_batch(state)) return state->custom.ss.ss_ScanTupleSlot;
    }
    const BatchRow& row = state->current->rows[state->next_row++];
    for (uint32 i = 0; i < state->cache_count; ++i) state->caches[i].current = row.query;
    return store_row(state, row);
}

TupleTableSlot* execute(CustomScanState* node)
{
    const PlanState& plan = node->ss.ps;
    ExprContext* context = plan.ps_ExprContext;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        TupleTableSlot* slot = next_row(state_of(node));
        if (TupIsNull(slot)) return slot;
        ResetExprContext(context);
        context->ecxt_scantuple = slot;
        if (ExecQual(plan.qual, context)) return plan.ps_ProjInfo != nullptr ? ExecProject(plan.ps_ProjInfo) : slot;
        InstrCountFiltered1(node, 1);
    }
}

bool all_rows_taken(const KnnBatchState* state)
{
    if (!state->ended) return false;
    return !state->prepared || (state->next_row == state->current->row_count && state->next->row_count == 0);
}

// Forget the rows read ahead.
void drop_batch(KnnBatchState* state)
{
    if (!state->prepared) return;
    ExecClearTuple(state->custom.ss.ss_ScanTupleSlot);
    for (uint32 i = 0; i < state->cache_count; ++i) {
        reset_answer_cache(&state->caches[i]);
        drop_next_batch(&state->caches[i]);
    }
    clear_rows(state->current);
    clear_rows(state->next);
    state->next_row = 0;
}

void end(CustomScanState* node)
{
    KnnBatchState* state = state_of(node);
    drop_batch(state);
    ExecClearTuple(node->ss.ss_ScanTupleSlot);
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) {
        unregister_answer_cache(&state->caches[i]);
        index_close(state->caches[i].index, NoLock);
    }
    state->prepared = false;
    ExecEndNode(state->child);
}

void rescan_batch(CustomScanState* node)
{
    KnnBatchState* state = state_of(node);
    // The next execution may also be stopped early, or also have a single row.
    if (!all_rows_taken(state) || state->rows_now <= 1) state->width = 1;
    drop_batch(state);
    await_scan(state->keys);
    state->ended = false;
    state->rows_now = 0;
    if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
    if (state->child->chgParam == nullptr) ExecReScan(state->child);
}

void explain(CustomScanState* node, List*, ExplainState* explanation)
{
    explain_knn_batch(state_of(node), explanation);
}

}  // namespace

const CustomScanMethods knn_batch_scan_methods = {"KnnBatch", create_state};

bool is_knn_batch(const PlanState* node)
{
    return IsA(node, CustomScanState) && reinterpret_cast<const CustomScanState*>(node)->methods == &methods;
}

}  // namespace pgwarp
