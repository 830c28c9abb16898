// knn_graph(index, k, first_block, last_block): the k nearest rows of every row of the table, in heap order, a batch at
// a time. If the caller fetches value by value, only a batch is held in memory. PostgreSQL puts the result of a
// function in FROM into a tuplestore, which keeps work_mem in memory and the rest in a temporary file.
#include "postgres/fmgr_cpp.h"
#include "postgres/functions/arguments.h"
#include "postgres/functions/batch_pipeline.h"

extern "C" {
#include "executor/executor.h"
#include "funcapi.h"
#include "storage/predicate.h"
#include "utils/tuplestore.h"
}

namespace pgwarp
{

namespace
{

constexpr int columns = 3;

// A run over the rows of a range of blocks: they are read, searched for and returned.
struct GraphRun {
    MemoryContext context;  // holds the whole run
    SearchTarget* target;
    TableScanDesc scan;
    TupleTableSlot* slot;
    BatchPipeline* pipeline;
    const QueryBatch* batch;  // the batch being returned
    TupleDesc row_type;
    bool ended;       // every row of the range was read
    uint32 query;     // position in the batch of the next query to return
    uint32 position;  // position of its next neighbour
};

struct BlockRange {
    BlockNumber first;
    BlockNumber last;
};

// Arguments 2 and 3: the first and the last block; NULL stands for the table's first or last block.
BlockRange blocks_of_arguments(FunctionCallInfo fcinfo)
{
    const int64 first = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT64(2);
    const int64 last = PG_ARGISNULL(3) ? int64{MaxBlockNumber} : PG_GETARG_INT64(3);
    if (first < 0 || last < 0) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("numbers of blocks must not be negative")));
    }
    return {static_cast<BlockNumber>(Min(first, int64{MaxBlockNumber})),
            static_cast<BlockNumber>(Min(last, int64{MaxBlockNumber}))};
}

// Read the next row; false at the end of the range.
bool next_heap_row(GraphRun* run)
{
    CHECK_FOR_INTERRUPTS();
    return table_scan_getnextslot_tidrange(run->scan, ForwardScanDirection, run->slot);
}

void add_row(GraphRun* run, QueryBatch* batch)
{
    if (!row_is_indexed(run->target->reader, run->slot)) return;
    const float* vector = slot_vector(run->target->reader, run->slot, run->target->dimensions);
    if (vector == nullptr) return;
    const Tid tid = {ItemPointerGetBlockNumber(&run->slot->tts_tid), ItemPointerGetOffsetNumber(&run->slot->tts_tid),
                     0};
    add_query(batch, run->target, 0, vector);
    const uint32 at = batch->count - 1;
    // The index has no zero vectors under cosine.
    if (batch->arbitrary[at]) {
        batch->count--;
    } else {
        batch->own[at] = tid;
    }
}

// Fill a batch with the next rows.
void read_rows(QueryBatch* batch, void* state)
{
    auto* run = static_cast<GraphRun*>(state);
    const OwnerScope scope = enter_owner_of(run->target->reader);
    while (batch->count < batch->capacity && !run->ended) {
        if (next_heap_row(run)) {
            add_row(run, batch);
        } else {
            run->ended = true;
        }
    }
    leave_owner(scope);
    // Unpin the page while the engine works.
    ExecClearTuple(run->slot);
}

// Get the answers to the next rows; false when no row is left.
bool next_batch(GraphRun* run)
{
    MemoryContext outer = MemoryContextSwitchTo(run->context);
    run->batch = next_answers(run->pipeline);
    run->query = 0;
    run->position = 0;
    MemoryContextSwitchTo(outer);
    return run->batch != nullptr;
}

GraphRun* begin_graph(FunctionCallInfo fcinfo, MemoryContext parent, TupleDesc row_type)
{
    const uint32 k = checked_k(PG_GETARG_INT32(1));
    const BlockRange range = blocks_of_arguments(fcinfo);
    MemoryContext context = AllocSetContextCreate(parent, "pgwarp graph", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(context);
    auto* run = static_cast<GraphRun*>(palloc0(sizeof(GraphRun)));
    run->context = context;
    run->row_type = row_type;
    run->target = open_search_target(PG_GETARG_OID(0), UINT64_MAX);
    Relation heap = run->target->heap;
    run->pipeline = make_pipeline(run->target, k, true, read_rows, run);
    run->slot = table_slot_create(heap, nullptr);
    PredicateLockRelation(heap, run->target->snapshot);
    // An empty range and k = 0 give no rows; the checks above apply to them too.
    run->ended = range.first > range.last || k == 0;
    ItemPointerData first;
    ItemPointerData last;
    ItemPointerSet(&first, range.first, FirstOffsetNumber);
    ItemPointerSet(&last, range.last, MaxOffsetNumber);
    if (!run->ended)
        run->scan = table_beginscan_tidrange(heap, run->target->snapshot, &first, &last PGWARP_NO_SCAN_FLAGS);
    MemoryContextSwitchTo(outer);
    return run;
}

void end_graph(GraphRun* run)
{
    if (run->scan != nullptr) table_endscan(run->scan);
    ExecDropSingleTupleTableSlot(run->slot);
    close_search_target(run->target);
    MemoryContextDelete(run->context);
}

// One edge of the graph, in the form of column values.
struct Edge {
    ItemPointerData row;
    ItemPointerData neighbour;
    double distance;
};

void set_pointer(ItemPointer pointer, Tid tid)
{
    ItemPointerSet(pointer, tid.block, tid.offset);
}

// Get the next edge; false at the end.
bool next_edge(GraphRun* run, Edge* edge)
{
    for (;;) {
        if (run->batch == nullptr || run->query == run->batch->count) {
            if (!next_batch(run)) return false;
        }
        const QueryBatch* batch = run->batch;
        if (run->position < batch->found_count[run->query]) {
            const Neighbour& found = batch->found[static_cast<size_t>(run->query) * batch->k + run->position++];
            set_pointer(&edge->row, batch->own[run->query]);
            set_pointer(&edge->neighbour, found.tid);
            edge->distance = found.distance;
            return true;
        }
        run->position = 0;
        run->query++;
    }
}

void edge_values(const Edge* edge, Datum* values)
{
    values[0] = PointerGetDatum(&edge->row);
    values[1] = PointerGetDatum(&edge->neighbour);
    values[2] = Float8GetDatum(edge->distance);
}

// Return all edges in a tuplestore.
Datum materialize_graph(FunctionCallInfo fcinfo)
{
    InitMaterializedSRF(fcinfo, 0);
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    GraphRun* run = begin_graph(fcinfo, CurrentMemoryContext, info->setDesc);
    Edge edge;
    bool nulls[columns] = {};
    while (next_edge(run, &edge)) {
        Datum values[columns];
        edge_values(&edge, values);
        tuplestore_putvalues(info->setResult, info->setDesc, values, nulls);
    }
    end_graph(run);
    return static_cast<Datum>(0);
}

// End a run whose caller needs no further edges.
void stop_streaming(Datum argument)
{
    end_graph(reinterpret_cast<GraphRun*>(DatumGetPointer(argument)));
}

GraphRun* begin_streaming(FunctionCallInfo fcinfo, FuncCallContext* calls)
{
    auto* info = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    MemoryContext outer = MemoryContextSwitchTo(calls->multi_call_memory_ctx);
    TupleDesc row_type = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &row_type) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    row_type = BlessTupleDesc(row_type);
    // The run lies in the expression's context, because PostgreSQL deletes the calls' context in a callback of its own.
    GraphRun* run = begin_graph(fcinfo, info->econtext->ecxt_per_query_memory, row_type);
    RegisterExprContextCallback(info->econtext, stop_streaming, PointerGetDatum(run));
    MemoryContextSwitchTo(outer);
    return run;
}

// Return one edge per call.
Datum stream_graph(FunctionCallInfo fcinfo)
{
    auto* info = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (SRF_IS_FIRSTCALL()) {
        FuncCallContext* begun = SRF_FIRSTCALL_INIT();
        begun->user_fctx = begin_streaming(fcinfo, begun);
    }
    FuncCallContext* calls = SRF_PERCALL_SETUP();
    auto* run = static_cast<GraphRun*>(calls->user_fctx);
    Edge edge;
    if (!next_edge(run, &edge)) {
        UnregisterExprContextCallback(info->econtext, stop_streaming, PointerGetDatum(run));
        end_graph(run);
        SRF_RETURN_DONE(calls);
    }
    Datum values[columns];
    bool nulls[columns] = {};
    edge_values(&edge, values);
    HeapTuple tuple = heap_form_tuple(run->row_type, values, nulls);
    SRF_RETURN_NEXT(calls, HeapTupleGetDatum(tuple));
}

bool caller_wants_all(FunctionCallInfo fcinfo)
{
    const auto* info = reinterpret_cast<const ReturnSetInfo*>(fcinfo->resultinfo);
    if (info == nullptr || !IsA(info, ReturnSetInfo)) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("set-valued function called in context that cannot accept a set")));
    }
    return (info->allowedModes & SFRM_Materialize_Preferred) != 0 || (info->allowedModes & SFRM_ValuePerCall) == 0;
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_knn_graph)
{
    using namespace pgwarp;
    const bool all = caller_wants_all(fcinfo);
    // The function is not strict, because the blocks may be NULL.
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) {
        auto* info = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
        if (all) {
            InitMaterializedSRF(fcinfo, 0);
        } else {
            info->isDone = ExprEndResult;
        }
        PG_RETURN_NULL();
    }
    return all ? materialize_graph(fcinfo) : stream_graph(fcinfo);
}
