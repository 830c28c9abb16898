// pgwarp_recall(index, k, sample): the recall of a live index, measured with rows of its table as queries.
#include <cmath>
#include <limits>

#include "postgres/access/index_options.h"
#include "postgres/access/query_value.h"
#include "postgres/access/scan.h"
#include "postgres/settings.h"

extern "C" {
#include "catalog/pg_class.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(pgwarp_recall);
}

namespace pgwarp
{

namespace
{

constexpr uint64 sample_seed = 20260101;

// One measurement.
struct RecallRun {
    Relation heap;
    Relation index;
    Snapshot snapshot;
    HeapReader* reader;
    IndexShape shape;
    uint32 k;
    uint32 sample;   // queries wanted
    uint32 queries;  // queries drawn
    float* vectors;  // [queries][dimensions]
};

// The nearest rows of one query, as tids; the query's own row is the first of the true ones.
struct Neighbours {
    Candidate* items;
    uint32 count;
};

const float* query_of(const RecallRun* run, uint32 i)
{
    return run->vectors + static_cast<size_t>(i) * run->shape.dimensions;
}

// Whether a row is in the index: its predicate holds, and its value is one that can be searched for.
bool row_qualifies(RecallRun* run, ExprState* predicate, TupleTableSlot* slot)
{
    ExprContext* context = GetPerTupleExprContext(run->reader->estate);
    ResetExprContext(context);
    context->ecxt_scantuple = slot;
    return ExecQual(predicate, context);
}

// A zero vector has no neighbours under cosine; of the others it has none that are worth asking for.
bool can_be_query(const IndexShape& shape, const float* vector)
{
    return is_of_bits(static_cast<Metric>(shape.metric)) || canonical_norm(vector, shape.dimensions) != 0;
}

// Draw visible rows, each with the same chance.
void draw_sample(RecallRun* run)
{
    pg_prng_state random;
    pg_prng_seed(&random, sample_seed);
    TupleTableSlot* slot = table_slot_create(run->heap, nullptr);
    ExprState* predicate = ExecPrepareQual(run->reader->info->ii_Predicate, run->reader->estate);
    TableScanDesc scan = table_beginscan(run->heap, run->snapshot, 0, nullptr);
    uint64 seen = 0;
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        if (!row_qualifies(run, predicate, slot)) continue;
        const uint64 place = seen < run->sample ? seen : pg_prng_uint64_range(&random, 0, seen);
        if (place < run->sample) {
            const float* vector = slot_vector(run->reader, slot, run->shape.dimensions);
            if (vector == nullptr || !can_be_query(run->shape, vector)) continue;
            memcpy(run->vectors + place * run->shape.dimensions, vector, sizeof(float) * run->shape.dimensions);
        }
        ++seen;
    }
    run->queries = static_cast<uint32>(Min(seen, uint64{run->sample}));
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
}

// Sort candidates by value and keep the nearest k.
void keep_nearest(CandidateList* list, uint32 k)
{
    sort_candidates(list);
    list->count = Min(list->count, k);
}

// Search for one query, as a scan does or exactly, and rank what is found by the heap rows' own distances.
void search_ranked(RecallRun* run, const IndexState& state, SearchRequest* request, const float* query, uint32 k,
                   CandidateList* found)
{
    auto* sent = static_cast<float*>(palloc(sizeof(float) * run->shape.dimensions));
    const auto metric = static_cast<Metric>(run->shape.metric);
    prepare_query(metric, query, run->shape.dimensions, sent);
    request->query_count = 1;
    request->dimensions = run->shape.dimensions;
    request->load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    const SearchResults results = read_search_reply(engine_search(run->index, state, request, sent));
    for (uint32 i = 0; i < results.count; ++i) {
        Candidate candidate = {results.results[i].tid, 0.0, 0.0, false};
        if (fetch_row_distance(run->reader, candidate.tid, metric, query, run->shape.dimensions, &candidate.value)) {
            push_candidate(found, candidate, CurrentMemoryContext);
        }
    }
    keep_nearest(found, k);
}

// What a query with LIMIT run->k gets, and one row more: the query's own is no reason to look farther.
void search_as_scan(RecallRun* run, const IndexState& state, const float* query, uint32 k, CandidateList* found)
{
    SearchRequest effort = {};
    plan_normal_search(run->index, state, run->k, &effort);
    SearchRequest request = {};
    plan_normal_search(run->index, state, k, &request);
    request.effort = effort.effort;
    search_ranked(run, state, &request, query, k, found);
}

// The truth, out of the vectors that the index keeps. Half vectors may swap near neighbours, so more are ranked.
void search_exactly(RecallRun* run, const IndexState& state, const float* query, uint32 k, CandidateList* found)
{
    SearchRequest request = {};
    request.mode = SearchMode::continuation;
    request.after.distance = -std::numeric_limits<double>::infinity();
    request.k = Min(max_k, k * 2 + 16);
    search_ranked(run, state, &request, query, k, found);
}

// Share of the true neighbours that were found. The query's own row, the nearest, doesn't count.
double share_found(const CandidateList& truth, const CandidateList& found)
{
    if (truth.count < 2) return 1.0;
    // Equal distances are equally right.
    const double nearest = truth.items[0].value;
    const double farthest = truth.items[truth.count - 1].value;
    uint32 hits = 0;
    for (uint32 i = 0; i < found.count; ++i) {
        if (found.items[i].value <= farthest) ++hits;
    }
    if (found.count > 0 && found.items[0].value <= nearest) --hits;
    return Min(1.0, static_cast<double>(hits) / (truth.count - 1));
}

// Keep the k nearest in a list that is a max-heap by value.
void offer(CandidateList* list, const Candidate& candidate, uint32 k)
{
    if (list->count < k) {
        push_candidate(list, candidate, CurrentMemoryContext);
        uint32 at = list->count - 1;
        while (at > 0 && list->items[(at - 1) / 2].value < list->items[at].value) {
            const Candidate parent = list->items[(at - 1) / 2];
            list->items[(at - 1) / 2] = list->items[at];
            list->items[at] = parent;
            at = (at - 1) / 2;
        }
        return;
    }
    if (candidate.value >= list->items[0].value) return;
    list->items[0] = candidate;
    for (uint32 at = 0;;) {
        uint32 largest = at;
        for (uint32 child = 2 * at + 1; child <= 2 * at + 2 && child < k; ++child) {
            if (list->items[child].value > list->items[largest].value) largest = child;
        }
        if (largest == at) return;
        const Candidate down = list->items[at];
        list->items[at] = list->items[largest];
        list->items[largest] = down;
        at = largest;
    }
}

// The truth for all queries where the index keeps no vectors: one pass over the table.
CandidateList* scan_truth(RecallRun* run, uint32 k)
{
    auto* truth = static_cast<CandidateList*>(palloc0(sizeof(CandidateList) * run->queries));
    TupleTableSlot* slot = table_slot_create(run->heap, nullptr);
    ExprState* predicate = ExecPrepareQual(run->reader->info->ii_Predicate, run->reader->estate);
    TableScanDesc scan = table_beginscan(run->heap, run->snapshot, 0, nullptr);
    const auto metric = static_cast<Metric>(run->shape.metric);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        if (!row_qualifies(run, predicate, slot)) continue;
        const float* vector = slot_vector(run->reader, slot, run->shape.dimensions);
        if (vector == nullptr) continue;
        const Tid tid = {ItemPointerGetBlockNumber(&slot->tts_tid), ItemPointerGetOffsetNumber(&slot->tts_tid), 0};
        for (uint32 i = 0; i < run->queries; ++i) {
            const double value = canonical_distance(metric, query_of(run, i), vector, run->shape.dimensions);
            if (!std::isnan(value)) offer(&truth[i], {tid, value, value, false}, k);
        }
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    for (uint32 i = 0; i < run->queries; ++i) sort_candidates(&truth[i]);
    return truth;
}

// Mean recall over the sample.
double measure(RecallRun* run)
{
    const uint32 k = run->k + 1;  // one is the query's own row
    const IndexState first = read_index_state(run->index);
    run->shape = first.meta.shape;
    run->vectors = static_cast<float*>(MemoryContextAllocHuge(
        CurrentMemoryContext, sizeof(float) * run->shape.dimensions * static_cast<Size>(run->sample)));
    const ResultKind kind = access_method(run->shape.method).result_kind(first.directory->options);
    draw_sample(run);
    CandidateList* truths = kind == ResultKind::approximate ? scan_truth(run, k) : nullptr;
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp recall", ALLOCSET_DEFAULT_SIZES);
    double sum = 0;
    for (uint32 i = 0; i < run->queries; ++i) {
        CHECK_FOR_INTERRUPTS();
        MemoryContext outer = MemoryContextSwitchTo(context);
        const IndexState state = read_index_state(run->index);
        CandidateList truth = {};
        CandidateList found = {};
        if (truths != nullptr) {
            truth = truths[i];
        } else {
            search_exactly(run, state, query_of(run, i), k, &truth);
        }
        search_as_scan(run, state, query_of(run, i), k, &found);
        sum += share_found(truth, found);
        MemoryContextSwitchTo(outer);
        MemoryContextReset(context);
    }
    return run->queries == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / run->queries;
}

// Whoever measures must be allowed to read every row.
void check_may_measure(Relation heap)
{
    const Oid table = RelationGetRelid(heap);
    const AclResult result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);
    if (result != ACLCHECK_OK) aclcheck_error(result, OBJECT_TABLE, RelationGetRelationName(heap));
    if (check_enable_rls(table, InvalidOid, false) == RLS_ENABLED) {
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot measure the recall of an index under row-level security")));
    }
}

}  // namespace

}  // namespace pgwarp

Datum pgwarp_recall(PG_FUNCTION_ARGS)
{
    using namespace pgwarp;
    const int32 k = PG_GETARG_INT32(1);
    const int32 sample = PG_GETARG_INT32(2);
    if (k < 1 || k > 10000 || sample < 1 || sample > 1000000) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be between 1 and 10000, and sample between 1 and 1000000")));
    }
    RecallRun run = {};
    run.index = relation_open(PG_GETARG_OID(0), AccessShareLock);
    access_method_of(run.index);
    run.heap = table_open(run.index->rd_index->indrelid, AccessShareLock);
    check_may_measure(run.heap);
    run.snapshot = GetActiveSnapshot();
    run.reader = open_heap_reader(run.heap, run.index, run.snapshot);
    run.k = static_cast<uint32>(k);
    run.sample = static_cast<uint32>(sample);
    const double recall = measure(&run);
    close_heap_reader(run.reader);
    table_close(run.heap, AccessShareLock);
    relation_close(run.index, AccessShareLock);
    if (std::isnan(recall)) PG_RETURN_NULL();
    PG_RETURN_FLOAT8(recall);
}
