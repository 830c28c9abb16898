// ambeginscan, amrescan, amgettuple, amendscan: an index scan that returns rows in order of distance.
#include "postgres/am/callbacks.h"
#include "postgres/am/element_type.h"
#include "postgres/am/index_options.h"
#include "postgres/scan/filtered_scan.h"
#include "postgres/scan/heap_prefetch.h"
#include "postgres/scan/query_value.h"
#include "postgres/scan/scan_state.h"
#include "postgres/scan/unplaced_rows.h"
#include "postgres/settings.h"
#include "protocol/search_bound.h"

extern "C" {
#include "pgstat.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

// Raise an error for a scan without an ORDER BY, or under a snapshot for which tids of dead rows may be reused.
void check_scan(IndexScanDesc scan)
{
    if (scan->numberOfOrderBys != 1 || scan->orderByData == nullptr) {
        elog(ERROR, "cannot scan %s index without order", access_method_of(scan->indexRelation).name);
    }
    if (!IsMVCCSnapshot(scan->xs_snapshot)) {
        elog(ERROR, "non-MVCC snapshots are not supported with %s", access_method_of(scan->indexRelation).name);
    }
}

// Copy the query, and make the form that the engine takes.
void take_query(IndexScanDesc scan, const ScanKeyData& key)
{
    Progress* now = &state_of(scan)->now;
    const KeyType key_type = state_of(scan)->key;
    now->null_query = (key.sk_flags & SK_ISNULL) != 0;
    now->query = now->null_query ? blank_query(key_type.element, now->dimensions)
                                 : copy_query(key_type, key.sk_argument, state_of(scan)->query_length);
    const bool ordered = prepare_query(now->metric, now->query, &now->sent);
    now->arbitrary = now->null_query || !ordered;
    OperatorDistance* other_operator = state_of(scan)->other_operator;
    if (other_operator != nullptr && !now->null_query) {
        set_operator_query(other_operator, scan->indexRelation, now->metric, now->query, key.sk_argument);
    }
    now->null_distance = now->null_query;
}

// The execution whose joins may have answers for the scan; null if there is none.
const EState* answering_execution(IndexScanDesc scan)
{
    return scans_for_statement(scan) ? state_of(scan)->hint.node->state : nullptr;
}

// Find the metric and dimensions of the index, from prefetched answers or from its metapage.
void learn_shape(IndexScanDesc scan)
{
    Progress& now = state_of(scan)->now;
    const LimitHint& hint = state_of(scan)->hint;
    const PrefetchedAnswers& ahead = prefetched_answers;
    const EState* executor = answering_execution(scan);
    if (executor != nullptr && ahead.join_shape(executor, scan->indexRelation, &now.metric, &now.dimensions)) return;
    if (ahead.partition_shape(hint.partitions, hint.partition, &now.metric, &now.dimensions)) return;
    const IndexShape shape = read_metapage(scan->indexRelation).shape;
    now.metric = static_cast<Metric>(shape.metric);
    now.dimensions = shape.dimensions;
}

void read_keys(IndexScanDesc scan)
{
    Progress* now = &state_of(scan)->now;
    now->filter = read_filter_keys(scan->indexRelation, scan->keyData, scan->numberOfKeys);
    now->exhausted = now->filter.null_vectors;
    const EState* executor = answering_execution(scan);
    if (scan->numberOfKeys == 0 || executor == nullptr) return;
    prefetched_answers.note_keys(executor, scan->indexRelation, scan->keyData, scan->numberOfKeys);
}

// Begin the search, when the executor asks for the first tuple.
void start(IndexScanDesc scan)
{
    check_scan(scan);
    pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
    if (scan->instrument != nullptr) scan->instrument->nsearches++;
#endif
    ScanState* state = state_of(scan);
    if (state->other_operator != nullptr) state->other_operator->nans_first = state->hint.leading.nans;
    learn_shape(scan);
    take_query(scan, scan->orderByData[0]);
    read_keys(scan);
    state->now.stage = leads(state->hint.leading) ? RowStage::leading_nulls : RowStage::placed;
    const FilteredScan* filter = state->hint.filter;
    const bool bounded = filter != nullptr && takes_bound(scan->indexRelation);
    state->now.within = bounded ? filter->within : no_bound;
}

// Whether no row passes the scan's keys, or none can pass the filter above because none has a distance.
bool none_passes(const ScanState* state)
{
    if (state->now.filter.none) return true;
    return state->now.null_query && state->hint.filter != nullptr && state->hint.filter->bounded;
}

// Return one row to the executor.
void emit(IndexScanDesc scan, const Candidate& candidate)
{
    const Progress& now = state_of(scan)->now;
    if (setting_verify_results) verify_passing(scan, candidate.tid);
    if (setting_verify_results && now.unplaced) verify_unplaced(scan);
    if (setting_verify_results && !now.unplaced) verify_candidate(scan, candidate);
    ItemPointerSet(&scan->xs_heaptid, candidate.tid.block, candidate.tid.offset);
    const bool fetched = scan->xs_heapfetch != nullptr && !candidate.all_visible;
    if (fetched) reuse_page(scan->heapRelation, scan->xs_heapfetch, candidate.tid.block);
    scan->xs_recheck = now.filter.recheck;
    scan->xs_recheckorderby = false;
    scan->xs_orderbyvals[0] = Float8GetDatum(candidate.value);
    scan->xs_orderbynulls[0] = now.null_distance;
}

// The next row: of the batch, of a new batch, or an unplaced one.
Candidate* next_candidate(IndexScanDesc scan)
{
    Progress& now = state_of(scan)->now;
    while (is_leading(now.stage)) {
        if (Candidate* candidate = next_unplaced_candidate(scan)) return candidate;
        end_leading_stage(scan);
    }
    for (;;) {
        Candidate* candidate = next_in_order(scan);
        if (candidate != nullptr) return candidate;
        if (now.exhausted) break;
        fetch_batch(scan);
    }
    now.stage = RowStage::trailing;
    return next_unplaced_candidate(scan);
}

}  // namespace

IndexScanDesc begin_scan(Relation index, int key_count, int order_by_count)
{
    IndexScanDesc scan = RelationGetIndexScan(index, key_count, order_by_count);
    auto* state = static_cast<ScanState*>(palloc0(sizeof(ScanState)));
    state->scan_context = AllocSetContextCreate(CurrentMemoryContext, "pgwarp scan", ALLOCSET_SMALL_SIZES);
    state->context = AllocSetContextCreate(state->scan_context, "pgwarp rescan", ALLOCSET_DEFAULT_SIZES);
    state->method = &access_method_of(index);
    state->key = index_key_type(index);
    state->query_length = query_length(state->key.element, index);
    state->other_operator = open_operator_distance(index, state->key);
    scan->opaque = state;
    // PostgreSQL leaves the allocation of these arrays to the access method.
    scan->xs_orderbyvals = static_cast<Datum*>(palloc0(sizeof(Datum) * Max(1, order_by_count)));
    scan->xs_orderbynulls = static_cast<bool*>(palloc0(sizeof(bool) * Max(1, order_by_count)));
    return scan;
}

void give_hint(IndexScanDesc scan, const LimitHint& hint)
{
    state_of(scan)->hint = hint;
}

void rescan(IndexScanDesc scan, ScanKey keys, int, ScanKey order_bys, int)
{
    ScanState* state = state_of(scan);
    free_tid_set(&state->now.returned);
    forget_unplaced(state);
    MemoryContextReset(state->context);
    scan->xs_hitup = nullptr;
    state->now = {};
    if (state->heap != nullptr) table_index_fetch_reset(state->heap->fetch);
    if (keys != nullptr && scan->numberOfKeys > 0) {
        memmove(scan->keyData, keys, sizeof(ScanKeyData) * scan->numberOfKeys);
    }
    if (order_bys != nullptr && scan->numberOfOrderBys > 0) {
        memmove(scan->orderByData, order_bys, sizeof(ScanKeyData) * scan->numberOfOrderBys);
    }
}

bool next_tuple(IndexScanDesc scan, ScanDirection)
{
    ScanState* state = state_of(scan);
    MemoryContext outer = MemoryContextSwitchTo(state->context);
    if (state->now.query.count == 0) start(scan);
    Candidate* candidate = nullptr;
    if (none_passes(state)) {
        // The scan is at its end.
    } else if (!scan->xs_want_itup) {
        candidate = next_candidate(scan);
    } else {
        // The executor takes each returned row for visible, whether or not its page is all-visible, so
        // return_included() checks.
        do {
            CHECK_FOR_INTERRUPTS();
            candidate = next_candidate(scan);
        } while (candidate != nullptr && !return_included(scan, candidate));
    }
    if (candidate != nullptr) {
        emit(scan, *candidate);
        describe_row(scan, *candidate);
        state->now.emitted++;
        if (state->now.ahead != nullptr) state->now.ahead->taken++;
    }
    MemoryContextSwitchTo(outer);
    return candidate != nullptr;
}

void end_scan(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    if (state->heap != nullptr) close_heap_reader(state->heap);
    end_included_return(state);
    free_tid_set(&state->now.returned);
    forget_unplaced(state);
    MemoryContextDelete(state->scan_context);
    pfree(scan->xs_orderbyvals);
    pfree(scan->xs_orderbynulls);
    if (state->other_operator != nullptr) pfree(state->other_operator);
    pfree(state);
    scan->opaque = nullptr;
}

}  // namespace pgwarp
