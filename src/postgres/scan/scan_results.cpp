// Turns the engine's results into rows in order of distance.
#include <algorithm>
#include <cmath>

#include "postgres/am/attribute_code.h"
#include "postgres/scan/filtered_scan.h"
#include "postgres/scan/heap_prefetch.h"
#include "postgres/scan/scan_state.h"
#include "postgres/scan/search_limits.h"
#include "postgres/settings.h"

namespace pgwarp
{

namespace
{

constexpr Size fewest_gathered = 4096;
constexpr uint32 fewest_room = 16;  // of a list of rows

// Order by value, ties by heap address.
int compare_candidates(const void* a, const void* b)
{
    const auto* left = static_cast<const Candidate*>(a);
    const auto* right = static_cast<const Candidate*>(b);
    if (left->value != right->value) return left->value < right->value ? -1 : 1;
    if (left->tid == right->tid) return 0;
    return left->tid < right->tid ? -1 : 1;
}

// Make the candidate of a result; false when no snapshot of this scan can see its row.
bool make_candidate(IndexScanDesc scan, const Result& result, const SearchReply& reply, Candidate* candidate)
{
    const Progress& now = state_of(scan)->now;
    *candidate = {result.tid, 0.0, 0.0, false, false, false, no_place};
    if (now.arbitrary) return true;
    if (reply.kind != ResultKind::approximate) {
        DistanceBounds bounds = bound_distance(result, reply.kind, reply.bound_width);
        const OperatorDistance* other_operator = state_of(scan)->other_operator;
        if (other_operator != nullptr) bounds = other_operator->bounds.bound(bounds);
        candidate->value = may_lead(other_operator) ? lowest : bounds.lower;
        candidate->upper = bounds.upper;
        return true;
    }
    if (!scanned_row_distance(scan, result.tid, &candidate->value)) return false;
    candidate->upper = candidate->value;
    return true;
}

// Decide about a row whose value is below the floor. True: it goes into the batch, because its distance is not below
// the floor, only its lower bound. False: the row comes too late, since farther rows were emitted, and is dropped.
bool place_late_row(IndexScanDesc scan, Candidate* candidate)
{
    ScanState* state = state_of(scan);
    if (setting_iterative == static_cast<int>(IterativeSetting::relaxed)) return true;
    double distance = 0;
    if (candidate->value == candidate->upper || !scanned_row_distance(scan, candidate->tid, &distance)) return false;
    if (distance < state->now.floor) return false;
    candidate->value = state->now.floor;
    candidate->upper = Max(distance, state->now.floor);
    return true;
}

// Mark the rows of the sorted batch whose order only their exact distances decide: rows whose bounds overlap those of a
// neighbour or of an earlier row, and the last row, whose bounds may overlap those of a later batch.
void mark_unsettled(Progress* now)
{
    CandidateList& batch = now->batch;
    for (uint32 i = 0; i < batch.count; ++i) {
        Candidate& candidate = batch.items[i];
        if (candidate.value < candidate.upper) {
            const bool may_follow = i + 1 == batch.count || batch.items[i + 1].value <= candidate.upper;
            candidate.unsettled = may_follow || candidate.value <= now->ceiling;
        }
        now->ceiling = Max(now->ceiling, candidate.upper);
    }
}

// Whether rows of later searches are merged with the rows of the batch that were not emitted yet. Approximate results
// come in the order of their codes, which differs from that of their distances: the nearest row may come last.
bool merges_results(IndexScanDesc scan, ResultKind kind)
{
    const ScanState* state = state_of(scan);
    const FilteredScan* filter = state->hint.filter;
    const bool is_merged_above = filter != nullptr && filter->merges;
    return kind == ResultKind::approximate && !state->now.arbitrary && !is_merged_above &&
           setting_iterative != static_cast<int>(IterativeSetting::relaxed);
}

// The number of rows of a batch of approximate results below which none is emitted while searches go on.
uint32 most_gathered()
{
    return static_cast<uint32>(Max(fewest_gathered, static_cast<Size>(work_mem) * 1024 / sizeof(Candidate)));
}

void drop_emitted(CandidateList* batch)
{
    batch->count -= batch->next;
    memmove(batch->items, batch->items + batch->next, sizeof(Candidate) * batch->count);
    batch->next = 0;
}

// Allow the first `ready` rows of the batch to be emitted. Later rows that are nearer than these come too late.
void make_ready(Progress* now, uint32 ready)
{
    now->batch.ready = ready;
    if (ready > 0) now->boundary = now->batch.items[ready - 1].value;
    now->floor = Max(now->floor, now->boundary);
}

bool is_farther(const Candidate& left, const Candidate& right)
{
    return compare_candidates(&left, &right) > 0;
}

// Make room for this number of rows after the last one.
void make_room(CandidateList* list, uint32 more, MemoryContext context)
{
    if (more <= list->capacity - list->count) return;
    const uint32 capacity = Max(Max(list->count + more, list->capacity * 2), fewest_room);
    const Size bytes = sizeof(Candidate) * capacity;
    list->items = static_cast<Candidate*>(list->items == nullptr ? MemoryContextAllocHuge(context, bytes)
                                                                 : repalloc_huge(list->items, bytes));
    list->capacity = capacity;
}

// Move a row of the batch to the held rows, with its exact distance; drop it when no snapshot of this scan sees it.
void settle(IndexScanDesc scan, uint32 number)
{
    ScanState* state = state_of(scan);
    Progress& now = state->now;
    if (scan->xs_want_itup) look_ahead_from(scan, number);
    Candidate candidate = now.batch.items[number];
    double distance = 0;
    reuse_page(scan->heapRelation, scan_heap(scan)->fetch, candidate.tid.block);
    if (!scanned_row_distance(scan, candidate.tid, &distance)) return;
    candidate.value = candidate.upper = distance;
    candidate.unsettled = false;
    push_candidate(&now.held, candidate, state->context);
    std::push_heap(now.held.items, now.held.items + now.held.count, is_farther);
}

Candidate* take_held(CandidateList* held)
{
    std::pop_heap(held->items, held->items + held->count, is_farther);
    return &held->items[--held->count];
}

}  // namespace

HeapReader* scan_heap(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    if (state->heap == nullptr) {
        MemoryContext outer = MemoryContextSwitchTo(state->scan_context);
        state->heap = open_heap_reader(scan->heapRelation, scan->indexRelation, scan->xs_snapshot);
        MemoryContextSwitchTo(outer);
    }
    return state->heap;
}

bool row_distance(IndexScanDesc scan, Tid tid, double* distance)
{
    const ScanState* state = state_of(scan);
    const Progress& now = state->now;
    if (state->other_operator != nullptr)
        return fetch_operator_distance(scan_heap(scan), tid, state->other_operator, distance);
    return fetch_row_distance(scan_heap(scan), tid, now.metric, now.query, distance);
}

void push_candidate(CandidateList* list, const Candidate& candidate, MemoryContext context)
{
    make_room(list, 1, context);
    list->items[list->count++] = candidate;
}

void sort_candidates(CandidateList* list)
{
    for (uint32 i = 1; i < list->count; ++i) {
        if (list->items[i].value < list->items[i - 1].value) {
            qsort(list->items, list->count, sizeof(Candidate), compare_candidates);
            return;
        }
    }
}

void restart_order(IndexScanDesc scan)
{
    Progress& now = state_of(scan)->now;
    now.floor = now.boundary = lowest;
    // Held rows were compared with the rows of earlier searches only. A later row may lie on either side of one that
    // is within its bounds.
    now.ceiling = lowest;
    for (uint32 i = 0; i < now.held.count; ++i) now.ceiling = Max(now.ceiling, now.held.items[i].value);
}

void take_results(IndexScanDesc scan, const SearchResults& found)
{
    ScanState* state = state_of(scan);
    Progress& now = state->now;
    const bool merges = merges_results(scan, found.header->kind);
    if (!merges) now.batch.next = now.batch.count;
    if (now.batch.count > 0) drop_emitted(&now.batch);
    make_room(&now.batch, found.count, state->context);
    for (uint32 i = 0; i < found.count; ++i) {
        const Result& result = found.results[i];
        if (now.first_done && !add_tid(&now.returned, result.tid)) continue;
        Candidate& candidate = now.batch.items[now.batch.count];
        if (!make_candidate(scan, result, *found.header, &candidate)) continue;
        if (found.places != nullptr) candidate.place = found.places[i];
        const bool late = !now.arbitrary && candidate.value < now.floor;
        if (late && !place_late_row(scan, &candidate)) continue;
        now.batch.count++;
    }
    sort_candidates(&now.batch);
    make_ready(&now, merges ? 0 : now.batch.count);
    for (uint32 i = 0; i < now.held.count; ++i) now.held.items[i].place = no_place;  // valid in an earlier answer only
    mark_unsettled(&now);
}

void choose_ready(IndexScanDesc scan, ResultKind kind, bool by_codes)
{
    Progress& now = state_of(scan)->now;
    if (!merges_results(scan, kind)) return;
    const uint32 count = now.batch.count;
    if (now.exhausted) {
        make_ready(&now, count);
    } else if (by_codes) {
        make_ready(&now, count < most_gathered() ? 0 : count / 2);
    } else {
        const uint64 missing = now.last_wanted > now.emitted ? now.last_wanted - now.emitted : 0;
        make_ready(&now, static_cast<uint32>(Min(uint64{count}, missing)));
    }
}

Candidate* next_in_order(IndexScanDesc scan)
{
    Progress& now = state_of(scan)->now;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const bool in_batch = now.batch.next < now.batch.ready;
        // No later row of the batch is nearer than this. After the batch, rows of the next one may be.
        const double reached = in_batch ? now.batch.items[now.batch.next].value : now.boundary;
        const bool last = !in_batch && now.exhausted;
        if (now.held.count > 0 && (last || now.held.items[0].value <= reached)) return take_held(&now.held);
        if (!in_batch) return nullptr;
        const uint32 number = now.batch.next++;
        if (!now.batch.items[number].unsettled) return &now.batch.items[number];
        settle(scan, number);
    }
}

void verify_passing(IndexScanDesc scan, Tid tid)
{
    const SearchTids* tids = tids_of(scan);
    if (tids != nullptr && !has_tid(*tids, tid)) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("index \"%s\" returned row (%u,%u), which is not in the bitmap",
                               RelationGetRelationName(scan->indexRelation), tid.block, tid.offset)));
    }
    const FilterKeys& filter = state_of(scan)->now.filter;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    if (filter.words == nullptr || !fetch_row_values(scan_heap(scan), tid, values, nulls)) return;
    AttributeCoder coder;
    open_attribute_coder(scan->indexRelation, &coder);
    uint64 attributes[most_filter_columns];
    code_attributes(coder, values, nulls, attributes);
    if (passes_keys(filter, attributes)) return;
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("index \"%s\" returned row (%u,%u), which does not pass its keys",
                           RelationGetRelationName(scan->indexRelation), tid.block, tid.offset)));
}

void verify_candidate(IndexScanDesc scan, const Candidate& candidate)
{
    const Progress& now = state_of(scan)->now;
    double truth = 0;
    if (now.arbitrary || !scanned_row_distance(scan, candidate.tid, &truth)) return;
    const double tolerance = distance_rounding * Max(std::fabs(truth), std::fabs(candidate.value));
    const bool is_bound = candidate.value < candidate.upper;
    const bool right = is_bound ? candidate.value <= truth && truth <= candidate.upper
                                : candidate.value == truth || std::fabs(candidate.value - truth) <= tolerance;
    if (right) return;
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("index \"%s\" returned a wrong distance for row (%u,%u): %.17g to %.17g, the row's own is "
                           "%.17g",
                           RelationGetRelationName(scan->indexRelation), candidate.tid.block, candidate.tid.offset,
                           candidate.value, candidate.upper, truth)));
}

}  // namespace pgwarp
