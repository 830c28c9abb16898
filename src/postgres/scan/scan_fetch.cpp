// The searches of a scan: first the method's own, then the same with more rows while they are few, then exact
// continuations until every row was offered.
#include <limits>

#include "postgres/am/index_options.h"
#include "postgres/client/loader.h"
#include "postgres/scan/filtered_scan.h"
#include "postgres/scan/heap_prefetch.h"
#include "postgres/scan/scan_state.h"
#include "postgres/scan/search_start.h"
#include "postgres/settings.h"
#include "protocol/rungs.h"

namespace pgwarp
{

namespace
{

constexpr uint32 continue_after = 1024;  // rows beyond which an exact scan costs less
constexpr uint32 first_chunk = 1024;

constexpr SearchCursor front = {-std::numeric_limits<double>::infinity(), 0};

// From the second search on, the scan must know the rows of the first, to leave them out.
void remember_first_batch(ScanState* state)
{
    Progress& now = state->now;
    if (now.first_done || !now.started) return;
    init_tid_set(&now.returned, state->context, static_cast<Size>(work_mem) * 1024);
    for (uint32 i = 0; i < now.batch.count; ++i) add_tid(&now.returned, now.batch.items[i].tid);
    now.first_done = true;
}

// Start the cursor over for a new generation. Rows offered before are left out by their tids.
void follow_generation(Progress* now, uint64 generation)
{
    if (now->generation != generation) now->cursor = front;
    now->generation = generation;
}

// Make the request of the next search, which is sent at once.
void prepare_search(IndexScanDesc scan, const IndexState& state, SearchRequest* request)
{
    const Progress& now = state_of(scan)->now;
    limit_request(request);
    set_within(&request->settings, now.within);
    if (now.continuation) {
        // A continuation from the front finds the offered rows again, so it asks for more.
        const uint64 again = now.cursor.distance == front.distance ? now.returned.count : 0;
        request->mode = SearchMode::continuation;
        request->after = now.cursor;
        request->k = static_cast<uint32>(Min(uint64{now.wanted} + again, uint64{max_k}));
        return;
    }
    // A KnnFilter above the scan chooses the depth of each search by itself.
    const bool filtered = state_of(scan)->hint.filter != nullptr;
    (filtered ? prepare_normal_search : prepare_rungs)(scan->indexRelation, state, now.wanted, request);
}

AnsweredScan describe_answered(IndexScanDesc scan)
{
    const LimitHint& hint = state_of(scan)->hint;
    // An index-only scan reads few rows of the heap, if any.
    Relation heap = scan->xs_want_itup ? nullptr : scan->heapRelation;
    PlanState* filter = hint.filter != nullptr ? hint.filter->filter : nullptr;
    return {hint.node, filter, heap, scan->xs_snapshot, limit_hint_rows(hint)};
}

// The answer of a k-NN join, or of the scans of other partitions, to the first search; null when there is none.
const BatchAnswer* first_answer(IndexScanDesc scan, const ScanQuery& query)
{
    const LimitHint& hint = state_of(scan)->hint;
    Progress& now = state_of(scan)->now;
    if (now.arbitrary || !scans_for_statement(scan)) return nullptr;
    now.ahead = prefetched_answers.find_join(hint.node->state, scan->indexRelation, query);
    if (now.ahead != nullptr) return prefetched_answers.take(now.ahead, describe_answered(scan), &now.wanted);
    if (hint.partitions == nullptr || now.filter.words != nullptr) return nullptr;
    return prefetched_answers.find_partition(hint.partitions, hint.partition, query);
}

// Whether an answer has fewer rows than the LIMIT, and going on from it would leave placed rows out at the end.
bool ends_too_early(IndexScanDesc scan, const BatchAnswer& answer)
{
    const int64 rows = limit_page_rows(state_of(scan)->hint);
    return int64{answer.count} + answer.dropped < rows && reads_to_end(scan, read_index_state(scan->indexRelation));
}

// Take a prefetched answer; false when there is none for the next search.
bool take_ahead(IndexScanDesc scan, SearchRequest* request, SearchResults* found)
{
    Progress& now = state_of(scan)->now;
    const ScanQuery query = {now.metric, now.sent, now.within, predicate_of(now.filter)};
    const BatchAnswer* answer = nullptr;
    if (!now.started && !now.continuation) {
        answer = first_answer(scan, query);
    } else if (now.ahead != nullptr && !now.continuation) {
        answer = prefetched_answers.deepen(now.ahead, describe_answered(scan), query, now.wanted);
    }
    if (answer == nullptr || (!now.started && ends_too_early(scan, *answer))) {
        now.ahead = nullptr;
        return false;
    }
    *found = {};
    if (answer->part != nullptr) {
        *request = answer->part->request;
        *found = {answer->part->reply, answer->count,   answer->results,
                  answer->places,      answer->dropped, answer->passing};
        follow_generation(&now, request->key.generation);
    }
    return true;
}

// Note how the engine searched among the rows that pass the scan's keys.
void note_keys(IndexScanDesc scan, const SearchReply& reply)
{
    const ScanState* state = state_of(scan);
    if (state->now.filter.words == nullptr) return;
    elog(DEBUG1, UINT64_FORMAT " rows pass the keys: %s", static_cast<uint64>(reply.passing_rows),
         name_ways(static_cast<uint8>(reply.filter_ways)));
    if (state->hint.filter != nullptr) note_keyed_search(&state->hint.filter->keyed, reply);
}

// Search in the engine and take the results. False when the search must be repeated.
bool search_now(IndexScanDesc scan, SearchRequest* request, SearchResults* found)
{
    Progress& now = state_of(scan)->now;
    Relation index = scan->indexRelation;
    const IndexState seen = read_index_state(index);
    if (index_is_empty(seen)) return true;
    follow_generation(&now, placed_generation(seen.meta.generation));
    if (!now.started) choose_first_search(scan, seen);
    prepare_search(scan, seen, request);
    if (scan->xs_want_itup) ask_for_places(index, request);
    elog(DEBUG1, "searching index \"%s\" for %u rows%s", RelationGetRelationName(index), request->k,
         now.continuation ? ", exactly" : "");
    keep_begun_batch();
    *found = read_search_reply(engine_search(index, seen, request, now.sent, predicates_of(now.filter)));
    note_keys(scan, found->header);
    // The index was rebuilt meanwhile, so the cursor is invalid.
    return request->key.generation == now.generation || !now.continuation;
}

// Prefetch the heap rows of an answer.
void bring_rows_near(IndexScanDesc scan, const SearchResults& found)
{
    Relation heap = scan->heapRelation;
    if (scan->xs_want_itup || heap == nullptr || !may_prefetch(heap)) return;
    HeapPrefetch near;
    prefetch_pages(heap, found.results, Min(found.count, state_of(scan)->now.wanted), &near);
    prefetch_rows(near);
}

// Record the depth and the completeness of a search.
void note_search(Progress* now, bool complete, const SearchRequest& request, const SearchResults& found)
{
    const uint32 count = now->batch.count;
    const bool wider = !now->continuation && found.count > now->wanted;
    now->confirmed = wider ? static_cast<uint32>(uint64{count} * now->wanted / found.count) : count;
    // Approximate results come in the order of their codes, also in a continuation.
    now->exact = complete || (now->continuation && found.header.kind != ResultKind::approximate);
    now->last_was_dry = found.count + found.dropped < request.k;
    now->last_wanted = now->wanted;
    now->searches++;
}

// Whether the engine compared all rows that pass the scan's keys.
bool compared_all(const Progress& now, const SearchResults& found)
{
    const auto ways = static_cast<uint8>(found.header.filter_ways);
    return now.filter.words != nullptr && ways != 0 && (ways & static_cast<uint8>(FilterWays::searched)) == 0;
}

// Whether the scan's first search found fewer rows than asked for, though the method's own search may have missed some:
// a row that a later search finds would come too late.
bool may_lack_rows(const Progress& now, bool complete, const SearchRequest& request, const SearchResults& found)
{
    const bool dry = found.count + found.dropped < request.k;
    return !now.started && !now.continuation && now.filter.words != nullptr && !complete && dry &&
           !compared_all(now, found);
}

// Choose the next search.
void advance(Progress* now, bool complete, bool filtered, const SearchResults& found)
{
    const bool dry = now->last_was_dry;
    const bool by_rungs = !filtered && has_rungs(complete, found.header.kind);
    const uint32 rungs = rungs_of(now->wanted);
    const bool ahead = now->ahead != nullptr;  // prefetched answers have no cursor
    if (dry && compared_all(*now, found)) {
        now->exhausted = true;
    } else if (now->continuation) {
        now->exhausted = dry;
        now->cursor = found.header.last;
        now->wanted = Min(now->wanted * 2, max_k);
    } else if (complete && dry) {
        now->exhausted = true;
    } else if (complete && !ahead) {
        now->continuation = true;
        now->cursor = found.header.last;
        now->wanted = Max(first_chunk, Min(now->wanted * 2, max_k));
    } else if (by_rungs && rungs < max_rungs) {
        // Rungs drop rows that they find too late, so few rows don't mean that there are no more.
        now->wanted = rung_ends[rungs];
    } else if (by_rungs || dry || now->wanted >= continue_after) {
        now->continuation = true;
        now->cursor = front;
        now->wanted = first_chunk;
    } else {
        now->wanted *= 2;
    }
}

}  // namespace

PrefetchedAnswers prefetched_answers = {};

bool scans_for_statement(IndexScanDesc scan)
{
    const PlanState* node = state_of(scan)->hint.node;
    return node != nullptr && scan->xs_snapshot == node->state->es_snapshot;
}

bool fetch_batch(IndexScanDesc scan)
{
    ScanState* state = state_of(scan);
    Progress& now = state->now;
    Relation index = scan->indexRelation;
    if (now.started) {
        remember_first_batch(state);
    } else {
        now.wanted = first_wanted(state->hint);
        now.cursor = front;
        now.floor = -std::numeric_limits<double>::infinity();
        now.ceiling = now.floor;
        now.boundary = now.floor;
    }
    while (!now.exhausted) {
        CHECK_FOR_INTERRUPTS();
        SearchRequest request = {};
        SearchResults found = {};
        if (now.started) choose_next_search(scan);
        const bool ahead = take_ahead(scan, &request, &found);
        if (!ahead && !search_now(scan, &request, &found)) continue;
        if (request.k == 0) break;  // the index has no row
        const bool complete = is_complete(index, request.settings);
        if (may_lack_rows(now, complete, request, found)) {
            now.continuation = true;
            now.wanted = first_chunk;
            now.ahead = nullptr;
            continue;
        }
        now.batch_generation = request.key.generation;
        now.tombstone_version = request.tombstone_version;
        if (!ahead) bring_rows_near(scan, found);
        take_results(scan, found);
        if (!ahead) pfree(const_cast<Result*>(found.results));
        note_search(&now, complete, request, found);
        note_passing(scan, found.passing);
        const bool by_codes = now.continuation;
        advance(&now, complete, state->hint.filter != nullptr, found);
        choose_ready(scan, found.header.kind, by_codes);
        now.started = true;
        if (now.batch.next < now.batch.ready) return true;
        remember_first_batch(state);
    }
    now.exhausted = true;
    now.started = true;
    return false;
}

}  // namespace pgwarp
