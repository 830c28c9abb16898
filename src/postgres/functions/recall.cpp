// pgwarp_recall(index, k, sample): the recall of a live index, measured with rows of its table as queries. The queries
// of a chunk fit into work_mem.
#include <cmath>
#include <limits>

#include "postgres/fmgr_cpp.h"
#include "postgres/functions/neighbour_list.h"
#include "postgres/functions/search_target.h"
#include "postgres/scan/query_value.h"
#include "postgres/scan/search_reply.h"
#include "postgres/scan/search_start.h"
#include "postgres/settings.h"

extern "C" {
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "storage/predicate.h"
}

namespace pgwarp
{

namespace
{

constexpr uint64 sample_seed = 20260101;
constexpr uint32 most_queries = 1000000;

// One measurement.
struct RecallRun {
    SearchTarget* target;
    ResultKind kind;
    uint32 k;
    uint32 neighbours;      // neighbours compared for each query: k, and the query's own row
    uint32 sample;          // queries requested
    uint32 queries;         // queries drawn
    ItemPointerData* rows;  // [queries] their rows
    uint32 chunk;           // queries that fit into memory together
    uint32 at_once;         // queries of the present chunk
    float* vectors;         // [chunk][dimensions]
    NeighbourList* truths;  // [chunk], if the index stores no vectors
};

float* vector_of(const RecallRun* run, uint32 query)
{
    return run->vectors + static_cast<size_t>(query) * run->target->dimensions;
}

// Under cosine a zero vector has no neighbours; under the other metrics of floats it is no typical query.
bool can_be_query(const SearchTarget* target, const float* vector)
{
    return is_of_bits(target->metric) || canonical_norm(vector, target->dimensions) != 0;
}

TableScanDesc begin_table_scan(const SearchTarget* target)
{
    return table_beginscan(target->heap, target->snapshot, 0, nullptr);
}

// Draw visible rows, each with the same probability.
void draw_sample(RecallRun* run)
{
    SearchTarget* target = run->target;
    pg_prng_state random;
    pg_prng_seed(&random, sample_seed);
    TupleTableSlot* slot = table_slot_create(target->heap, nullptr);
    TableScanDesc scan = begin_table_scan(target);
    uint64 seen = 0;
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        if (!row_is_indexed(target->reader, slot)) continue;
        const uint64 place = seen < run->sample ? seen : pg_prng_uint64_range(&random, 0, seen);
        if (place < run->sample) {
            const float* vector = slot_vector(target->reader, slot, target->dimensions);
            if (vector == nullptr || !can_be_query(target, vector)) continue;
            run->rows[place] = slot->tts_tid;
        }
        ++seen;
    }
    run->queries = static_cast<uint32>(Min(seen, uint64{run->sample}));
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
}

// Read the vectors of the next chunk of queries.
void read_chunk(RecallRun* run, uint32 first)
{
    SearchTarget* target = run->target;
    TupleTableSlot* slot = table_slot_create(target->heap, nullptr);
    run->at_once = Min(run->chunk, run->queries - first);
    for (uint32 i = 0; i < run->at_once; ++i) {
        CHECK_FOR_INTERRUPTS();
        const bool found = table_tuple_fetch_row_version(target->heap, &run->rows[first + i], target->snapshot, slot);
        const float* vector = found ? slot_vector(target->reader, slot, target->dimensions) : nullptr;
        if (vector == nullptr) {
            elog(ERROR, "a row of table \"%s\" is not visible any more", RelationGetRelationName(target->heap));
        }
        memcpy(vector_of(run, i), vector, sizeof(float) * target->dimensions);
    }
    ExecDropSingleTupleTableSlot(slot);
}

NeighbourList make_list(uint32 k)
{
    const Size bytes = sizeof(Neighbour) * k;
    return {static_cast<Neighbour*>(MemoryContextAllocHuge(CurrentMemoryContext, bytes)), k, 0};
}

// Run one search, either a scan's or an exact one, and rank the results by the distances of the heap's rows.
void search_ranked(RecallRun* run, const IndexState& state, SearchRequest* request, const float* query,
                   NeighbourList* found)
{
    SearchTarget* target = run->target;
    auto* sent = static_cast<float*>(palloc(sizeof(float) * target->dimensions));
    prepare_query(target->metric, query, target->dimensions, sent);
    const RowView compared = dense_rows(query, 1, target->dimensions);
    request->load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    const SearchResults results =
        read_search_reply(engine_search(target->index, state, request, dense_rows(sent, 1, target->dimensions)));
    for (uint32 i = 0; i < results.count; ++i) {
        Neighbour row = {results.results[i].tid, 0};
        const bool visible = fetch_row_distance(target->reader, row.tid, target->metric, compared, &row.distance);
        if (visible && !std::isnan(row.distance)) found->offer(row);
    }
    found->sort();
}

// Find the answer to a query with LIMIT run->k, and one row more for the query's own row, with the same effort.
void search_as_scan(RecallRun* run, const IndexState& state, const float* query, NeighbourList* found)
{
    SearchRequest effort = {};
    prepare_normal_search(run->target->index, state, run->k, &effort);
    SearchRequest request = {};
    prepare_normal_search(run->target->index, state, run->neighbours, &request);
    request.effort = effort.effort;
    search_ranked(run, state, &request, query, found);
}

// Find the true neighbours with the index's vectors. Half vectors may swap near neighbours, so more rows are ranked.
void search_exactly(RecallRun* run, const IndexState& state, const float* query, NeighbourList* found)
{
    SearchRequest request = {};
    request.mode = SearchMode::continuation;
    request.after.distance = -std::numeric_limits<double>::infinity();
    request.k = Min(max_k, run->neighbours * 2 + 16);
    search_ranked(run, state, &request, query, found);
}

// Returns the share of the true neighbours that was found. The query's own row, the nearest, does not count.
double share_found(const NeighbourList& truth, const NeighbourList& found)
{
    if (truth.count < 2) return 1.0;
    // Rows at equal distances are equally correct.
    const double nearest = truth.items[0].distance;
    const double farthest = truth.items[truth.count - 1].distance;
    uint32 hits = 0;
    for (uint32 i = 0; i < found.count; ++i) {
        if (found.items[i].distance <= farthest) ++hits;
    }
    if (found.count > 0 && found.items[0].distance <= nearest) --hits;
    return Min(1.0, static_cast<double>(hits) / (truth.count - 1));
}

// Offer a row to all queries of the chunk.
void compare_row(RecallRun* run, const float* vector, ItemPointer tid)
{
    const Tid row = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    for (uint32 i = 0; i < run->at_once; ++i) {
        const double distance =
            canonical_distance(run->target->metric, vector_of(run, i), vector, run->target->dimensions);
        if (!std::isnan(distance)) run->truths[i].offer({row, distance});
    }
}

// Find the true neighbours of a chunk if the index stores no vectors: one pass over the table.
void scan_truth(RecallRun* run)
{
    SearchTarget* target = run->target;
    for (uint32 i = 0; i < run->at_once; ++i) run->truths[i].count = 0;
    TupleTableSlot* slot = table_slot_create(target->heap, nullptr);
    TableScanDesc scan = begin_table_scan(target);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        if (!row_is_indexed(target->reader, slot)) continue;
        const float* vector = slot_vector(target->reader, slot, target->dimensions);
        if (vector != nullptr) compare_row(run, vector, &slot->tts_tid);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    for (uint32 i = 0; i < run->at_once; ++i) run->truths[i].sort();
}

// Choose the chunk: the number of queries that fit into work_mem, at least one.
void size_chunk(RecallRun* run)
{
    Size bytes = sizeof(float) * run->target->dimensions;
    if (run->kind == ResultKind::approximate) bytes += sizeof(NeighbourList) + sizeof(Neighbour) * run->neighbours;
    const Size room = static_cast<Size>(work_mem) * 1024 / bytes;
    run->chunk = static_cast<uint32>(Min(Max(room, Size{1}), Size{Max(run->queries, 1U)}));
    run->vectors = static_cast<float*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * run->target->dimensions * run->chunk));
    if (run->kind != ResultKind::approximate) return;
    run->truths =
        static_cast<NeighbourList*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(NeighbourList) * run->chunk));
    for (uint32 i = 0; i < run->chunk; ++i) run->truths[i] = make_list(run->neighbours);
}

// Returns the recall of a search for one query of the chunk.
double measure_query(RecallRun* run, uint32 query)
{
    const IndexState state = read_index_state(run->target->index);
    const float* vector = vector_of(run, query);
    NeighbourList truth;
    if (run->truths != nullptr) {
        truth = run->truths[query];
    } else {
        truth = make_list(run->neighbours);
        search_exactly(run, state, vector, &truth);
    }
    NeighbourList found = make_list(run->neighbours);
    search_as_scan(run, state, vector, &found);
    return share_found(truth, found);
}

// Returns the mean recall over the sample.
double measure(RecallRun* run)
{
    const IndexState state = read_index_state(run->target->index);
    run->kind = result_promise(state.meta.shape, state.options).kind;
    run->rows = static_cast<ItemPointerData*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(ItemPointerData) * run->sample));
    draw_sample(run);
    size_chunk(run);
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp recall", ALLOCSET_DEFAULT_SIZES);
    double sum = 0;
    for (uint32 first = 0; first < run->queries; first += run->at_once) {
        read_chunk(run, first);
        if (run->truths != nullptr) scan_truth(run);
        for (uint32 i = 0; i < run->at_once; ++i) {
            CHECK_FOR_INTERRUPTS();
            MemoryContext outer = MemoryContextSwitchTo(context);
            sum += measure_query(run, i);
            MemoryContextSwitchTo(outer);
            MemoryContextReset(context);
        }
    }
    return run->queries == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / run->queries;
}

}  // namespace

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_recall)
{
    using namespace pgwarp;
    const int32 k = PG_GETARG_INT32(1);
    const int32 sample = PG_GETARG_INT32(2);
    if (k < 1 || k > 10000 || sample < 1 || sample > static_cast<int32>(most_queries)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be between 1 and 10000, and sample between 1 and %u", most_queries)));
    }
    RecallRun run = {};
    run.target = open_search_target(PG_GETARG_OID(0), 0);
    PredicateLockRelation(run.target->heap, run.target->snapshot);
    run.k = static_cast<uint32>(k);
    run.neighbours = run.k + 1;
    run.sample = static_cast<uint32>(sample);
    const OwnerScope scope = enter_owner_of(run.target->reader);
    const double recall = measure(&run);
    leave_owner(scope);
    close_search_target(run.target);
    if (std::isnan(recall)) PG_RETURN_NULL();
    PG_RETURN_FLOAT8(recall);
}
