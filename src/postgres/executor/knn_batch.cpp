// The executor's side of KnnBatch: reads outer rows in batches, has their queries searched for, and returns the rows.
#include "postgres/executor/knn_batch.h"

#include "postgres/am/distance_bound.h"
#include "postgres/am/element_type.h"
#include "postgres/client/index_state.h"
#include "postgres/executor/answer_cache.h"
#include "postgres/executor/custom_scan.h"
#include "postgres/executor/knn_batch_plan.h"
#include "postgres/scan/query_value.h"
#include "postgres/settings.h"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "storage/predicate.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

namespace pgwarp
{

namespace
{

constexpr uint32 ramp_factor = 8;      // growth of the width from batch to batch, up to state->most
constexpr uint32 most_lost_ahead = 2;  // begun batches whose answers were lost, after which none is begun
constexpr uint32 unlimited_rows = 64;  // wanted from the first search of a scan without LIMIT

struct BatchRow {
    MinimalTuple tuple;
    uint32 query;  // position in the caches' batch, or no_query
};

// Rows read together, and their queries.
struct RowBatch {
    MemoryContext context;
    BatchRow* rows;
    uint32 row_count;
    QueryRows* queries;  // for each cache [query_count]
    uint32 query_count;
    double within;     // the largest distance of interest to any of them
    BatchAhead ahead;  // the search, if it was begun while the batch before was joined
};

struct KnnBatchState {
    CustomScanState custom;
    KnnBatchPlan plan;
    PlanState* child;
    ExprState* query;
    KeyType key;  // of all indexes
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
    ExecInitScanTupleSlot(executor, &scan, scan.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
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
    const IndexShape shape = read_metapage(cache->index).shape;
    cache->metric = static_cast<Metric>(shape.metric);
    cache->dimensions = shape.dimensions;
    cache->wanted = wanted;
    cache->next_wanted = wanted;
    cache->least_wanted = wanted;
    cache->within = no_bound;
    cache->is_filtered = state->plan.filtered;
    cache->current = no_query;
    cache->near_query = no_query;
    // Like the scan of an index whose access method has no predicate locks: before the index is read.
    PredicateLockRelation(cache->index, executor->es_snapshot);
    register_answer_cache(cache);
}

RowBatch* make_row_batch(const KnnBatchState* state, EState* executor)
{
    auto* batch = static_cast<RowBatch*>(palloc0(sizeof(RowBatch)));
    batch->context = AllocSetContextCreate(executor->es_query_cxt, "KnnBatch", ALLOCSET_DEFAULT_SIZES);
    batch->queries = static_cast<QueryRows*>(palloc0(sizeof(QueryRows) * state->cache_count));
    return batch;
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

// Returns the next row of the outer side; null after the last one.
TupleTableSlot* read_row(KnnBatchState* state)
{
    if (state->ended) return nullptr;
    TupleTableSlot* slot = ExecProcNode(state->child);
    state->ended = TupIsNull(slot);
    if (state->ended) return nullptr;
    state->rows_now++;
    state->rows_read++;
    return slot;
}

// Read up to `width` rows of the outer side, the first of which was read already. Two batches exist at a time, so each
// may use half of work_mem.
void read_rows(KnnBatchState* state, TupleTableSlot* slot, RowBatch* batch)
{
    const uint32 width = Min(state->width, widest_batch(state));
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
        slot = batch->row_count < width && bytes < most_bytes ? read_row(state) : nullptr;
    }
}

TupleTableSlot* store_row(KnnBatchState* state, const BatchRow& row)
{
    return ExecStoreMinimalTuple(row.tuple, state->custom.ss.ss_ScanTupleSlot, false);
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
    const bool asks = !is_null && take_row_bound(state, batch);
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
    MemoryContextSwitchTo(outer);
    for (uint32 i = 0; i < batch->row_count; ++i) take_row_query(state, batch, &batch->rows[i]);
}

void clear_rows(RowBatch* batch)
{
    MemoryContextReset(batch->context);
    batch->rows = nullptr;
    batch->row_count = 0;
    batch->query_count = 0;
    batch->within = -no_bound;
    batch->ahead = {};
}

// Collect the rows of a batch, whose first was read already, and their queries.
void collect_rows(KnnBatchState* state, TupleTableSlot* first, RowBatch* batch)
{
    clear_rows(batch);
    read_rows(state, first, batch);
    state->width = Min(state->width * ramp_factor, state->most);
    if (batch->row_count == 1) return;  // a single search is left to the scan
    state->batches++;
    take_queries(state, batch);
}

// Returns the queries of a batch for one of the caches.
RowView queries_of(const RowBatch& batch, uint32 cache)
{
    RowView queries = batch.queries[cache].rows;
    queries.count = batch.query_count;
    return queries;
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
    begin_next_batch(&state->caches[0], queries_of(*next, 0), next->within, &next->ahead, next->context);
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
        TupleTableSlot* first = read_row(state);
        if (first == nullptr) return false;
        if (!state->prepared) prepare(state);
        collect_rows(state, first, state->current);
    }
    state->next_row = 0;
    if (works_ahead(state)) {
        TupleTableSlot* first = read_row(state);
        if (first != nullptr) collect_rows(state, first, state->next);
    }
    answer_rows(state);
    begin_ahead(state);
    return true;
}

// Pass on a row alone: the first of an outer side, which may be the only one.
TupleTableSlot* next_single_row(KnnBatchState* state)
{
    TupleTableSlot* out = state->custom.ss.ss_ScanTupleSlot;
    forget_answers(state);
    TupleTableSlot* slot = read_row(state);
    if (slot == nullptr) return ExecClearTuple(out);
    state->width = Min(ramp_factor, state->most);
    return ExecCopySlot(out, slot);
}

// Returns the next row; an empty slot after the last one.
TupleTableSlot* next_row(KnnBatchState* state)
{
    const bool any = state->prepared && state->next_row < state->current->row_count;
    if (!any) {
        ExecClearTuple(state->custom.ss.ss_ScanTupleSlot);
        if (state->width == 1) return next_single_row(state);
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
    state->ended = false;
    state->rows_now = 0;
    if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(state->child, node->ss.ps.chgParam);
    if (state->child->chgParam == nullptr) ExecReScan(state->child);
}

const char* effort_text(const ParameterList& settings)
{
    StringInfoData text;
    initStringInfo(&text);
    for (uint32 i = 0; i < settings.count; ++i) {
        appendStringInfo(&text, "%s%s=" INT64_FORMAT, i > 0 ? ", " : "", settings.items[i].name,
                         static_cast<int64>(settings.items[i].value));
    }
    return text.data;
}

void explain_filtered(const KnnBatchState* state, ExplainState* explanation)
{
    FilteredCounts filtered = {};
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) {
        if (state->caches[i].filter == nullptr) continue;
        const FilteredCounts counts = filtered_counts(state->caches[i].filter);
        filtered.looked_up += counts.looked_up;
        filtered.dropped += counts.dropped;
    }
    if (filtered.looked_up == 0) return;
    ExplainPropertyUInteger("Rows Filtered Ahead", nullptr, filtered.looked_up, explanation);
    ExplainPropertyUInteger("Rows Dropped Ahead", nullptr, filtered.dropped, explanation);
}

void explain_counts(const KnnBatchState* state, ExplainState* explanation)
{
    AnswerCacheCounts sum = {};
    for (uint32 i = 0; state->prepared && i < state->cache_count; ++i) {
        const AnswerCacheCounts& counts = state->caches[i].counts;
        sum.requests += counts.requests;
        sum.queries += counts.queries;
        sum.hits += counts.hits;
        sum.deepened += counts.deepened;
        sum.engine_ns += counts.engine_ns;
        sum.on_cuda = sum.on_cuda || counts.on_cuda;
        if (counts.requests > 0) sum.settings = counts.settings;
    }
    ExplainPropertyUInteger("Batches", nullptr, state->batches, explanation);
    ExplainPropertyUInteger("Rows Read", nullptr, state->rows_read, explanation);
    ExplainPropertyUInteger("Requests", nullptr, sum.requests, explanation);
    ExplainPropertyUInteger("Searches", nullptr, sum.queries, explanation);
    ExplainPropertyUInteger("Cache Hits", nullptr, sum.hits, explanation);
    ExplainPropertyUInteger("Deepened", nullptr, sum.deepened, explanation);
    explain_filtered(state, explanation);
    if (sum.requests == 0) return;
    ExplainPropertyText("Device", sum.on_cuda ? "cuda" : "cpu", explanation);
    if (sum.settings.count > 0) ExplainPropertyText("Effort", effort_text(sum.settings), explanation);
    if (explanation->timing) {
        ExplainPropertyFloat("Engine Time", "ms", static_cast<double>(sum.engine_ns) / 1e6, 3, explanation);
    }
}

void explain(CustomScanState* node, List*, ExplainState* explanation)
{
    const KnnBatchState* state = state_of(node);
    ExplainPropertyInteger("Batch Size", nullptr, state->most, explanation);
    if (explanation->analyze) explain_counts(state, explanation);
}

}  // namespace

const CustomScanMethods knn_batch_scan_methods = {"KnnBatch", create_state};

bool is_knn_batch(const PlanState* node)
{
    return IsA(node, CustomScanState) && reinterpret_cast<const CustomScanState*>(node)->methods == &methods;
}

}  // namespace pgwarp
