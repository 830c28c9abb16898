// pgwarp_recall(index, k, sample): the recall of a live index, measured with rows of its table as queries. The queries
// of a chunk fit into work_mem. In an index of sets with signatures the rows that stand out count alone, as in its
// calibration. pgwarp_recall(index, filter_columns, k, sample): the same among the rows that equal the query's row in
// these columns.
#include <cmath>
#include <limits>

#include "postgres/fmgr_cpp.h"
#include "postgres/functions/neighbour_list.h"
#include "postgres/functions/row_predicates.h"
#include "postgres/functions/search_target.h"
#include "postgres/functions/standing_out.h"
#include "postgres/scan/query_value.h"
#include "postgres/scan/search_limits.h"
#include "postgres/scan/search_reply.h"
#include "postgres/scan/search_start.h"
#include "postgres/settings.h"
#include "protocol/similarity.h"

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
    RowView* asked;         // [chunk]
    float* vectors;         // [chunk][dimensions] of the queries; null for lists
    MemoryContext lists;    // the queries that are lists; reset with each chunk
    SampledSets sets;       // none: all neighbours count
    double functions;       // hash functions of an index of sets
    NeighbourList* truths;  // [chunk], if the index stores no vectors
    // Null: queries have no predicates.
    const RowPredicates* filter;
    uint64* predicates;  // [chunk][filter->words]
};

bool is_of_lists(const RecallRun* run)
{
    return is_list(run->target->reader->key.element);
}

// Under cosine a zero vector has no neighbours; under the other metrics of floats it is no typical query.
bool can_be_query(const RecallRun* run, TupleTableSlot* slot)
{
    const SearchTarget* target = run->target;
    if (run->filter != nullptr) {
        uint64 codes[most_filter_columns];
        read_row_codes(*run->filter, target->reader, slot, codes);
        if (!makes_predicate(*run->filter, codes)) return false;
    }
    Datum key;
    if (is_list(target->reader->key.element)) return slot_key(target->reader, slot, &key);
    const float* vector = slot_vector(target->reader, slot, target->dimensions);
    if (vector == nullptr) return false;
    return is_of_bits(target->metric) || canonical_norm(vector, target->dimensions) != 0;
}

TableScanDesc begin_table_scan(const SearchTarget* target)
{
    return table_beginscan(target->heap, target->snapshot, 0, nullptr PGWARP_NO_SCAN_FLAGS);
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
            if (!can_be_query(run, slot)) continue;
            run->rows[place] = slot->tts_tid;
        }
        ++seen;
    }
    run->queries = static_cast<uint32>(Min(seen, uint64{run->sample}));
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
}

// Read a query that is a vector to its place in the chunk.
void read_vector(RecallRun* run, uint32 at, ItemPointer tid, TupleTableSlot* slot)
{
    SearchTarget* target = run->target;
    const bool found = table_tuple_fetch_row_version(target->heap, tid, target->snapshot, slot);
    const float* vector = found ? slot_vector(target->reader, slot, target->dimensions) : nullptr;
    if (vector == nullptr) {
        elog(ERROR, "a row of table \"%s\" is not visible any more", RelationGetRelationName(target->heap));
    }
    float* own = run->vectors + static_cast<size_t>(at) * target->dimensions;
    memcpy(own, vector, sizeof(float) * target->dimensions);
    run->asked[at] = dense_rows(own, 1, target->dimensions);
}

// Make the predicate of a query of the chunk from its row.
void read_predicate(RecallRun* run, uint32 at, ItemPointer tid, TupleTableSlot* slot)
{
    SearchTarget* target = run->target;
    if (!table_tuple_fetch_row_version(target->heap, tid, target->snapshot, slot)) {
        elog(ERROR, "a row of table \"%s\" is not visible any more", RelationGetRelationName(target->heap));
    }
    uint64 codes[most_filter_columns];
    read_row_codes(*run->filter, target->reader, slot, codes);
    make_row_predicate(*run->filter, codes, run->predicates + Size{at} * run->filter->words);
}

// The predicate of a query of the chunk.
QueryPredicate predicate_of(const RecallRun* run, uint32 query)
{
    if (run->filter == nullptr) return {};
    return {run->predicates + Size{query} * run->filter->words, run->filter->words};
}

// Read the next chunk of queries: lists until they fill the memory.
void read_chunk(RecallRun* run, uint32 first)
{
    TupleTableSlot* slot = table_slot_create(run->target->heap, nullptr);
    const uint32 most = Min(run->chunk, run->queries - first);
    MemoryContextReset(run->lists);
    MemoryContext outer = MemoryContextSwitchTo(run->lists);
    uint64 bytes = 0;
    for (run->at_once = 0; run->at_once < most && bytes < uint64{1024} * static_cast<uint64>(work_mem);
         ++run->at_once) {
        CHECK_FOR_INTERRUPTS();
        ItemPointer tid = &run->rows[first + run->at_once];
        if (is_of_lists(run)) {
            RowView& query = run->asked[run->at_once];
            query = fetch_row_query(run->target->reader, *tid);
            bytes += sizeof(uint32) * query.word_count();
        } else {
            read_vector(run, run->at_once, tid, slot);
        }
        if (run->filter != nullptr) read_predicate(run, run->at_once, tid, slot);
    }
    MemoryContextSwitchTo(outer);
    ExecDropSingleTupleTableSlot(slot);
}

NeighbourList make_list(uint32 k)
{
    const Size bytes = sizeof(Neighbour) * k;
    return {static_cast<Neighbour*>(MemoryContextAllocHuge(CurrentMemoryContext, bytes)), k, 0};
}

// The rows of a search: all, and those that the snapshot sees.
struct RankedRows {
    uint32 found;
    uint32 visible;
};

// Run one search for a query of the chunk, either a scan's or an exact one, and rank the results by the distances of
// the heap's rows.
RankedRows search_ranked(RecallRun* run, const IndexState& state, SearchRequest* request, uint32 number,
                         NeighbourList* found)
{
    SearchTarget* target = run->target;
    const RowView& query = run->asked[number];
    const QueryPredicate predicate = predicate_of(run, number);
    RowView sent;
    prepare_query(target->metric, query, &sent);
    request->load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    const SearchResults results = read_search_reply(
        engine_search(target->index, state, request, sent, predicate_of_all(predicate.words, predicate.count)));
    RankedRows rows = {results.count, 0};
    found->count = 0;
    for (uint32 i = 0; i < results.count; ++i) {
        Neighbour row = {results.results[i].tid, 0};
        if (!fetch_row_distance(target->reader, row.tid, target->metric, query, &row.distance)) continue;
        ++rows.visible;
        if (!std::isnan(row.distance)) found->offer(row);
    }
    found->sort();
    return rows;
}

// Find the answer to a query with LIMIT run->k, and one row more for the query's own row, with the same effort. Where
// deleted rows leave too few, go on as a scan does, with more rows and the effort for them.
void search_as_scan(RecallRun* run, const IndexState& state, uint32 query, NeighbourList* found)
{
    SearchRequest effort = {};
    prepare_normal_search(run->target->index, state, run->k, &effort);
    for (uint32 wanted = run->neighbours;; wanted = Min(wanted * 2, max_k)) {
        SearchRequest request = {};
        prepare_normal_search(run->target->index, state, wanted, &request);
        if (wanted == run->neighbours) request.effort = effort.effort;
        const RankedRows rows = search_ranked(run, state, &request, query, found);
        if (rows.visible >= run->neighbours || rows.found < request.k || wanted == max_k) return;
    }
}

// Find the true neighbours with the index's vectors. Half vectors may swap near neighbours, so more rows are ranked,
// and still more where many are deleted.
void search_exactly(RecallRun* run, const IndexState& state, uint32 query, NeighbourList* found)
{
    for (uint32 k = Min(max_k, run->neighbours * 2 + 16);; k = Min(max_k, k * 2)) {
        SearchRequest request = {};
        request.mode = SearchMode::continuation;
        request.after = front;
        request.k = k;
        const RankedRows rows = search_ranked(run, state, &request, query, found);
        if (rows.visible >= run->neighbours + run->neighbours / 2 || rows.found < k || k == max_k) return;
    }
}

// Returns the share of the true neighbours up to the distance `within` that was found; NaN where there are none. The
// query's own row, the nearest, does not count.
double share_found(const NeighbourList& truth, const NeighbourList& found, double within)
{
    uint32 wanted = truth.count;
    while (wanted > 1 && truth.items[wanted - 1].distance > within) --wanted;
    if (wanted < 2) return std::numeric_limits<double>::quiet_NaN();
    // Rows at equal distances are equally correct.
    const double nearest = truth.items[0].distance;
    const double farthest = truth.items[wanted - 1].distance;
    uint32 hits = 0;
    for (uint32 i = 0; i < found.count; ++i) {
        if (found.items[i].distance <= farthest) ++hits;
    }
    if (found.count > 0 && found.items[0].distance <= nearest) --hits;
    return Min(1.0, static_cast<double>(hits) / (wanted - 1));
}

bool passes_predicate(const QueryPredicate& predicate, const uint64* codes)
{
    return predicate.count == 0 || passes({predicate.words, predicate.count}, codes);
}

// Offer a row to all queries of the chunk whose predicate its codes pass.
void compare_row(RecallRun* run, const float* vector, const uint64* codes, ItemPointer tid)
{
    const Tid row = {ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid), 0};
    for (uint32 i = 0; i < run->at_once; ++i) {
        if (!passes_predicate(predicate_of(run, i), codes)) continue;
        const double distance =
            canonical_distance(run->target->metric, run->asked[i].values, vector, run->target->dimensions);
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
        uint64 codes[most_filter_columns] = {};
        if (run->filter != nullptr) read_row_codes(*run->filter, target->reader, slot, codes);
        const float* vector = slot_vector(target->reader, slot, target->dimensions);
        if (vector != nullptr) compare_row(run, vector, codes, &slot->tts_tid);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    for (uint32 i = 0; i < run->at_once; ++i) run->truths[i].sort();
}

// Choose the chunk: the number of queries that fit into work_mem, at least one.
void size_chunk(RecallRun* run)
{
    Size bytes = sizeof(RowView) + sizeof(float) * run->target->dimensions;
    if (run->filter != nullptr) bytes += sizeof(uint64) * run->filter->words;
    if (run->kind == ResultKind::approximate) bytes += sizeof(NeighbourList) + sizeof(Neighbour) * run->neighbours;
    const Size room = static_cast<Size>(work_mem) * 1024 / bytes;
    run->chunk = static_cast<uint32>(Min(Max(room, Size{1}), Size{Max(run->queries, 1U)}));
    run->asked = static_cast<RowView*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(RowView) * run->chunk));
    run->lists = AllocSetContextCreate(CurrentMemoryContext, "pgwarp recall lists", ALLOCSET_DEFAULT_SIZES);
    if (run->filter != nullptr) {
        run->predicates = static_cast<uint64*>(
            MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * run->filter->words * run->chunk));
    }
    if (is_of_lists(run)) return;
    run->vectors = static_cast<float*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(float) * run->target->dimensions * run->chunk));
    if (run->kind != ResultKind::approximate) return;
    run->truths =
        static_cast<NeighbourList*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(NeighbourList) * run->chunk));
    for (uint32 i = 0; i < run->chunk; ++i) run->truths[i] = make_list(run->neighbours);
}

// Returns the recall of a search for one query of the chunk; NaN where the query tells nothing.
double measure_query(RecallRun* run, uint32 query)
{
    const IndexState state = read_index_state(run->target->index);
    const RowView& asked = run->asked[query];
    NeighbourList truth;
    if (run->truths != nullptr) {
        truth = run->truths[query];
    } else {
        truth = make_list(run->neighbours);
        search_exactly(run, state, query, &truth);
    }
    NeighbourList found = make_list(run->neighbours);
    search_as_scan(run, state, query, &found);
    if (run->sets.count > 0) return share_found(truth, found, standing_out_distance(run->sets, asked, run->functions));
    return truth.count < 2 ? 1.0 : share_found(truth, found, std::numeric_limits<double>::infinity());
}

// Returns the mean recall over the sample; NaN where no query tells any.
double measure(RecallRun* run)
{
    const IndexState state = read_index_state(run->target->index);
    run->kind = result_promise(state.meta.shape, state.options).kind;
    run->functions = static_cast<double>(state.options.get(option_hashes, 1));
    run->rows = static_cast<ItemPointerData*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(ItemPointerData) * run->sample));
    draw_sample(run);
    size_chunk(run);
    if (is_of_lists(run)) run->sets = read_sampled_sets(run->target, run->rows, run->queries);
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp recall", ALLOCSET_DEFAULT_SIZES);
    // Wide, so that the rounding errors of many additions do not show in the mean.
    long double sum = 0;
    uint32 measured = 0;
    for (uint32 first = 0; first < run->queries; first += run->at_once) {
        read_chunk(run, first);
        if (run->truths != nullptr) scan_truth(run);
        for (uint32 i = 0; i < run->at_once; ++i) {
            CHECK_FOR_INTERRUPTS();
            MemoryContext outer = MemoryContextSwitchTo(context);
            const double recall = measure_query(run, i);
            MemoryContextSwitchTo(outer);
            MemoryContextReset(context);
            if (std::isnan(recall)) continue;
            sum += recall;
            ++measured;
        }
    }
    return measured == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(sum / measured);
}

}  // namespace

// filter_columns: null where queries have no predicates. NaN where no query tells of recall.
static double measured_recall(Oid index, ::ArrayType* filter_columns, int32 k, int32 sample)
{
    if (k < 1 || k > 10000 || sample < 1 || sample > static_cast<int32>(most_queries)) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be between 1 and 10000, and sample between 1 and %u", most_queries)));
    }
    RecallRun run = {};
    run.target = open_approximate_target(index, 0);
    if (filter_columns != nullptr) run.filter = open_row_predicates(run.target->index, filter_columns);
    PredicateLockRelation(run.target->heap, run.target->snapshot);
    run.k = static_cast<uint32>(k);
    run.neighbours = run.k + 1;
    run.sample = static_cast<uint32>(sample);
    const OwnerScope scope = enter_owner_of(run.target->reader);
    const double recall = measure(&run);
    leave_owner(scope);
    close_search_target(run.target);
    if (std::isnan(recall) && run.queries > 0) {
        ereport(NOTICE, (errmsg("no row stands out for any of the %u sampled rows", run.queries),
                         errdetail("The recall of sets by signatures is that of rows that stand out.")));
    }
    return recall;
}

}  // namespace pgwarp

PGWARP_FUNCTION(pgwarp_recall)
{
    const double recall = pgwarp::measured_recall(PG_GETARG_OID(0), nullptr, PG_GETARG_INT32(1), PG_GETARG_INT32(2));
    if (std::isnan(recall)) PG_RETURN_NULL();
    PG_RETURN_FLOAT8(recall);
}

PGWARP_FUNCTION(pgwarp_recall_among)
{
    const double recall =
        pgwarp::measured_recall(PG_GETARG_OID(0), PG_GETARG_ARRAYTYPE_P(1), PG_GETARG_INT32(2), PG_GETARG_INT32(3));
    if (std::isnan(recall)) PG_RETURN_NULL();
    PG_RETURN_FLOAT8(recall);
}
