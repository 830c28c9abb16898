#include "postgres/functions/query_answer.h"

#include "postgres/am/index_options.h"
#include "postgres/client/batch_search.h"
#include "postgres/functions/exact_search.h"
#include "postgres/functions/query_round.h"
#include "postgres/scan/heap_prefetch.h"
#include "postgres/scan/search_start.h"
#include "protocol/rungs.h"

extern "C" {
#include "pgstat.h"
}

namespace pgwarp
{

namespace
{

constexpr uint32 most_spare_per_k = 4;  // limit of SearchTarget::spare, in multiples of k

// The next step for a query after a search.
enum class Verdict {
    done,
    again,    // search again for more rows
    exactly,  // use exact continuations
};

// Describe the next search, for `wanted` rows of each query, in the sequence of rows that a scan has for it. A query
// that is a row of the table also finds itself, so `wanted` includes one row more; the effort stays that of `for_rows`.
void prepare_search(const SearchTarget* target, const IndexState& state, bool own_rows, uint32 wanted, uint32 for_rows,
                    SearchRequest* request)
{
    if (!own_rows) return prepare_rungs(target->index, state, wanted, request);
    prepare_normal_search(target->index, state, wanted, request);
    if (for_rows == wanted) return;
    SearchRequest effort = {};
    prepare_normal_search(target->index, state, for_rows, &effort);
    request->effort = effort.effort;
}

// Returns the queries of a round as consecutive rows in the form that the engine expects; without a copy for a whole
// batch.
RowView gather_queries(const Round& round)
{
    const size_t width = round.batch->dimensions;
    if (round.count == round.batch->count) return dense_rows(round.batch->sent, round.count, width);
    auto* out = static_cast<float*>(palloc(sizeof(float) * width * round.count));
    for (uint32 i = 0; i < round.count; ++i) {
        memcpy(out + i * width, round.batch->sent + round.queries[i] * width, sizeof(float) * width);
    }
    return dense_rows(out, round.count, width);
}

// Rungs may leave rows out: a search that returned few rows does not prove that there are no more.
Verdict judge_rungs(const Round& round, bool proven)
{
    if (proven) return Verdict::done;
    return rungs_of(round.wanted) < max_rungs ? Verdict::again : Verdict::exactly;
}

Verdict judge(const Round& round, bool proven, bool full, bool dry)
{
    if (proven) return Verdict::done;
    if (dry) return full || round.complete ? Verdict::done : Verdict::exactly;
    const uint32 enough = Max(continue_after, Min(max_k / 4, round.batch->k) * 4);
    if (round.wanted < enough && round.wanted < max_k) return Verdict::again;
    return full && !round.complete ? Verdict::done : Verdict::exactly;
}

// Prefetching: the pages of a query's rows two queries ahead, the rows themselves one query ahead.
struct Lookahead {
    bool used;
    uint32 query;           // position in the round of the next query whose pages are prefetched
    const Result* results;  // its results
    HeapPrefetch near[2];
    Result unknown[2][most_prefetched_rows];
};

// Leave out rows whose visibility is already known.
uint32 keep_unknown(const Round& round, const Result* results, uint32 count, Result* unknown)
{
    uint32 kept = 0;
    for (uint32 i = 0; i < Min(count, most_prefetched_rows); ++i) {
        if (!knows_row(round.target->visible, results[i].tid)) unknown[kept++] = results[i];
    }
    return kept;
}

void bring_pages_near(const Round& round, const BatchReply& reply, Lookahead* ahead)
{
    const uint32 which = ahead->query % 2;
    ahead->near[which].count = 0;
    if (!ahead->used || ahead->query >= round.count) return;
    const uint32 count = reply.counts[ahead->query];
    const Result* results = ahead->results;
    uint32 looked_up = reply.header.kind == ResultKind::approximate ? count : Min(count, round.batch->k + 1);
    if (reply.header.kind == ResultKind::exact) {
        looked_up = keep_unknown(round, results, looked_up, ahead->unknown[which]);
        results = ahead->unknown[which];
    }
    prefetch_pages(round.target->heap, results, looked_up, &ahead->near[which]);
    ahead->results += count;
    ahead->query++;
}

Lookahead* begin_lookahead(const Round& round, const BatchReply& reply)
{
    auto* ahead = static_cast<Lookahead*>(palloc0(sizeof(Lookahead)));
    ahead->used = may_prefetch(round.target->heap);
    ahead->results = reply.results;
    bring_pages_near(round, reply, ahead);
    bring_pages_near(round, reply, ahead);
    prefetch_rows(ahead->near[0]);
    return ahead;
}

// Take the results for the queries of one request. verdicts: [round.count].
void take_round(const Round& round, const BatchReply& reply, uint32 k, Verdict* verdicts)
{
    const Result* results = reply.results;
    const bool by_rungs = goes_by_rungs(round.target, round.batch, reply.header.kind);
    Lookahead* ahead = begin_lookahead(round, reply);
    for (uint32 i = 0; i < round.count; ++i) {
        CHECK_FOR_INTERRUPTS();
        const uint32 query = round.queries[i];
        prefetch_rows(ahead->near[(i + 1) % 2]);
        bring_pages_near(round, reply, ahead);
        NeighbourList list = {round.batch->found + static_cast<size_t>(query) * round.batch->k, round.batch->k, 0};
        const bool proven = rank_results(round, query, results, reply.counts[i], reply.header, &list);
        verdicts[i] = by_rungs ? judge_rungs(round, proven) : judge(round, proven, list.is_full(), reply.counts[i] < k);
        if (!round.batch->arbitrary[query]) list.sort();
        round.batch->found_count[query] = list.count;
        results += reply.counts[i];
    }
    for (uint32 i = 0; i < round.count; ++i) pgstat_count_index_scan(round.target->index);
    pgstat_count_index_tuples(round.target->index, results - reply.results);
    pfree(ahead);
    pfree(reply.copy);
}

// Queries of a batch that need further searches.
struct Unanswered {
    uint32* again;  // positions in the batch
    uint32 again_count;
    uint32* exactly;
    uint32 exactly_count;
    bool by_rungs;
};

// Take a reply, and collect the queries that it does not answer.
void answer_round(const Round& round, const BatchReply& reply, uint32 k, Unanswered* unanswered)
{
    auto* verdicts = static_cast<Verdict*>(palloc(sizeof(Verdict) * round.count));
    unanswered->by_rungs = goes_by_rungs(round.target, round.batch, reply.header.kind);
    take_round(round, reply, k, verdicts);
    for (uint32 i = 0; i < round.count; ++i) {
        const uint32 query = round.queries[i];
        if (verdicts[i] == Verdict::again) unanswered->again[unanswered->again_count++] = query;
        if (verdicts[i] == Verdict::exactly) unanswered->exactly[unanswered->exactly_count++] = query;
    }
    pfree(verdicts);
}

// Search for `count` queries of the batch.
void search_some(SearchTarget* target, QueryBatch* batch, const uint32* queries, uint32 count, uint32 wanted,
                 uint32 for_rows, Unanswered* unanswered)
{
    for (uint32 done = 0; done < count;) {
        CHECK_FOR_INTERRUPTS();
        const IndexState state = read_index_state(target->index);
        if (index_is_empty(state)) return;
        SearchRequest request = {};
        prepare_search(target, state, batch->own != nullptr, wanted, for_rows, &request);
        const uint32 some = Min(count - done, queries_per_request(batch->dimensions, request));
        const bool complete = is_complete(target->index);
        const Round round = {target, batch, queries + done, some, wanted, complete};
        limit_request(&request);
        const EngineReply raw = engine_search(target->index, state, &request, gather_queries(round));
        answer_round(round, read_batch_reply(raw.payload, raw.payload_bytes, some, request.k), request.k, unanswered);
        done += some;
    }
}

// Receive the reply to a begun search if it is available: another request, which would discard it, follows.
void keep_reply(QueryBatch* batch)
{
    BatchStart* start = batch->start;
    EngineReply raw;
    if (start->ahead.id == 0 || !finish_search(&start->ahead, &raw)) return;
    start->reply = static_cast<char*>(MemoryContextAlloc(GetMemoryChunkContext(batch), raw.payload_bytes));
    start->reply_bytes = raw.payload_bytes;
    memcpy(start->reply, raw.payload, raw.payload_bytes);
}

// Answer a whole batch with the search that was begun for it. False if there is no reply.
bool answer_started(SearchTarget* target, QueryBatch* batch, QueryBatch* next, const uint32* queries,
                    Unanswered* unanswered)
{
    keep_reply(batch);
    const BatchStart* start = batch->start;
    if (start->reply == nullptr) return false;
    if (next != nullptr) start_batch(target, next);
    const Round round = {target, batch, queries, batch->count, start->wanted, start->complete};
    const BatchReply reply = read_batch_reply(start->reply, start->reply_bytes, batch->count, start->request.k);
    pfree(start->reply);
    batch->start->reply = nullptr;
    answer_round(round, reply, start->request.k, unanswered);
    return true;
}

// If many queries lacked rows, the next batch requests more rows at once.
void learn_spare(SearchTarget* target, const QueryBatch* batch, uint32 again)
{
    if (again <= batch->count / 8) return;
    const uint64 most = uint64{batch->k} * most_spare_per_k + 8;
    target->spare = static_cast<uint32>(Min(most, uint64{target->spare} + batch->k / 4 + 1));
}

// Returns the rows that the search after one for `wanted` rows wants: those of the next rung, or twice the number.
uint32 deeper(const Unanswered& unanswered, uint32 wanted)
{
    if (unanswered.by_rungs && rungs_of(wanted) < max_rungs) return rung_ends[rungs_of(wanted)];
    return Min(wanted * 2, max_k);
}

// Whether no search was begun for the batch because each of its queries needs an exact one.
bool is_left_to_exact_searches(const SearchTarget* target, const QueryBatch* batch)
{
    const bool started = batch->start->ahead.id != 0 || batch->start->reply != nullptr;
    return !started && needs_exact_search(target, batch, read_index_state(target->index));
}

void answer_by_rounds(SearchTarget* target, QueryBatch* batch, QueryBatch* next)
{
    const Size bytes = sizeof(uint32) * batch->count;
    auto* queries = static_cast<uint32*>(palloc(bytes));
    Unanswered unanswered = {static_cast<uint32*>(palloc(bytes)), 0, static_cast<uint32*>(palloc(bytes)), 0, false};
    for (uint32 i = 0; i < batch->count; ++i) queries[i] = i;
    uint32 wanted = rows_searched_first(target, batch);
    if (!answer_started(target, batch, next, queries, &unanswered)) {
        search_some(target, batch, queries, batch->count, wanted, batch->k, &unanswered);
    }
    learn_spare(target, batch, unanswered.again_count);
    if (next != nullptr && unanswered.again_count + unanswered.exactly_count > 0) keep_reply(next);
    while (unanswered.again_count > 0) {
        const uint32 count = unanswered.again_count;
        memcpy(queries, unanswered.again, sizeof(uint32) * count);
        unanswered.again_count = 0;
        wanted = deeper(unanswered, wanted);
        search_some(target, batch, queries, count, wanted, wanted, &unanswered);
    }
    for (uint32 i = 0; i < unanswered.exactly_count; ++i) search_exactly(target, batch, unanswered.exactly[i]);
}

void answer_all(SearchTarget* target, QueryBatch* batch, QueryBatch* next)
{
    if (is_left_to_exact_searches(target, batch)) {
        for (uint32 i = 0; i < batch->count; ++i) search_exactly(target, batch, i);
    } else {
        answer_by_rounds(target, batch, next);
    }
    if (next != nullptr && next->start->ahead.id == 0 && next->start->reply == nullptr) start_batch(target, next);
}

}  // namespace

void start_batch(SearchTarget* target, QueryBatch* batch)
{
    BatchStart* start = batch->start;
    if (batch->count == 0 || batch->k == 0) return;
    const IndexState state = read_index_state(target->index);
    if (index_is_empty(state) || needs_exact_search(target, batch, state)) return;
    *start = {};
    start->wanted = rows_searched_first(target, batch);
    prepare_search(target, state, batch->own != nullptr, start->wanted, batch->k, &start->request);
    start->complete = is_complete(target->index);
    if (queries_per_request(batch->dimensions, start->request) < batch->count) return;
    limit_request(&start->request);
    const RowView queries = dense_rows(batch->sent, batch->count, batch->dimensions);
    begin_search(target->index, state, &start->request, queries, &start->ahead);
}

void answer_batch(SearchTarget* target, QueryBatch* batch, QueryBatch* next)
{
    if (batch->count == 0 || batch->k == 0) return;
    MemoryContext searching = AllocSetContextCreate(CurrentMemoryContext, "pgwarp queries", ALLOCSET_DEFAULT_SIZES);
    MemoryContext outer = MemoryContextSwitchTo(searching);
    const OwnerScope scope = enter_owner_of(target->reader);
    answer_all(target, batch, next);
    leave_owner(scope);
    MemoryContextSwitchTo(outer);
    MemoryContextDelete(searching);
}

}  // namespace pgwarp
