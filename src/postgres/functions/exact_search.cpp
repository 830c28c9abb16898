#include "postgres/functions/exact_search.h"

#include "postgres/am/tid_set.h"
#include "postgres/client/batch_search.h"
#include "postgres/functions/query_round.h"
#include "postgres/scan/search_limits.h"
#include "postgres/scan/search_reply.h"
#include "postgres/scan/search_start.h"
#include "protocol/rungs.h"

extern "C" {
#include "miscadmin.h"
}

namespace pgwarp
{

namespace
{

struct ExactSearch {
    Round round;  // with this query alone
    NeighbourList list;
    const float* sent;  // the query in the form that the engine expects
    uint64 generation;  // of the placed rows; cursor and list belong to it
    bool in_rungs;      // the next search is that of the rungs
    SearchCursor cursor;
    uint32 chunk;   // rows of the next continuation
    TidSet frozen;  // rows found by the rungs
    double floor;   // largest value of these
};

ExactSearch begin_search(SearchTarget* target, QueryBatch* batch, const uint32* query)
{
    ExactSearch search = {};
    search.round = {target, batch, query, 1, 0, true};
    search.list = {batch->found + static_cast<size_t>(*query) * batch->k, batch->k, 0};
    search.sent = batch->sent + static_cast<size_t>(*query) * batch->dimensions;
    search.chunk = Max(continue_after, Min(max_k / 2, batch->k) * 2);
    return search;
}

// Restart if the index has another generation, because cursors have another meaning there.
void follow_generation(ExactSearch* search, const IndexState& state)
{
    const uint64 generation = placed_generation(state.meta.generation);
    if (generation == search->generation) return;
    const ResultKind kind = result_promise(state.meta.shape, state.options).kind;
    search->generation = generation;
    search->in_rungs = goes_by_rungs(search->round.target, search->round.batch, kind) &&
                       !needs_exact_search(search->round.target, search->round.batch, state);
    search->cursor = front;
    search->list.count = 0;
    search->floor = lowest;
    free_tid_set(&search->frozen);
    init_tid_set(&search->frozen, CurrentMemoryContext, static_cast<Size>(work_mem) * 1024);
}

void plan_request(const ExactSearch& search, const IndexState& state, SearchRequest* request)
{
    if (search.in_rungs) {
        prepare_rungs(search.round.target->index, state, rung_ends[max_rungs - 1], request);
    } else {
        request->mode = SearchMode::continuation;
        request->after = search.cursor;
        request->k = search.chunk;
    }
    limit_request(request);
}

double value_of(const Result& result, const SearchReply& reply)
{
    return bound_distance(result, reply.kind, reply.bound_width).lower;
}

// Note the rows of the rungs.
void freeze(ExactSearch* search, const BatchReply& reply)
{
    for (uint32 i = 0; i < reply.counts[0]; ++i) {
        add_tid(&search->frozen, reply.results[i].tid);
        search->floor = Max(search->floor, value_of(reply.results[i], reply.header));
    }
}

// Whether a row comes after the rungs' rows. A row that belongs before them was found too late and is left out, as in a
// scan. Where results are bounds, the row's distance decides, because a bound may be smaller.
bool comes_behind(const ExactSearch& search, const Result& result, const SearchReply& reply)
{
    const QueryBatch* batch = search.round.batch;
    const SearchTarget* target = search.round.target;
    const uint32 query = *search.round.queries;
    if (has_tid(&search.frozen, result.tid)) return false;
    if (batch->arbitrary[query] || !(value_of(result, reply) < search.floor)) return true;
    if (reply.kind == ResultKind::exact) return false;
    double distance = 0;
    const RowView compared = dense_rows(query_at(batch, query), 1, batch->dimensions);
    return fetch_row_distance(target->reader, result.tid, target->metric, compared, &distance) &&
           distance >= search.floor;
}

// Take the rows of a reply. Returns true when no further row could change the answer.
bool take_rows(ExactSearch* search, const BatchReply& reply)
{
    auto* rows = static_cast<Result*>(palloc(sizeof(Result) * Max(1U, reply.counts[0])));
    uint32 count = 0;
    for (uint32 i = 0; i < reply.counts[0]; ++i) {
        if (comes_behind(*search, reply.results[i], reply.header)) rows[count++] = reply.results[i];
    }
    const bool proven = rank_results(search->round, *search->round.queries, rows, count, reply.header, &search->list);
    pfree(rows);
    return proven;
}

// Prepare the next search: the first continuation begins at the first row, so it returns the rungs' rows once more.
void advance(ExactSearch* search, const BatchReply& reply)
{
    if (search->in_rungs) {
        search->in_rungs = false;
        freeze(search, reply);
    } else {
        search->cursor = reply.header.last;
        search->chunk = Min(search->chunk * 2, max_k);
    }
}

void run_search(ExactSearch* search)
{
    Relation index = search->round.target->index;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const IndexState state = read_index_state(index);
        if (index_is_empty(state)) return;
        follow_generation(search, state);
        SearchRequest request = {};
        plan_request(*search, state, &request);
        const EngineReply raw =
            engine_search(index, state, &request, dense_rows(search->sent, 1, search->round.batch->dimensions));
        if (request.key.generation != search->generation) continue;
        const BatchReply reply = read_batch_reply(raw.payload, raw.payload_bytes, 1, request.k);
        const bool last = !search->in_rungs && reply.counts[0] < request.k;
        const bool proven = take_rows(search, reply);
        advance(search, reply);
        pfree(reply.copy);
        if (proven || last) return;
    }
}

}  // namespace

void search_exactly(SearchTarget* target, QueryBatch* batch, uint32 query)
{
    ExactSearch search = begin_search(target, batch, &query);
    run_search(&search);
    free_tid_set(&search.frozen);
    if (!batch->arbitrary[query]) search.list.sort();
    batch->found_count[query] = search.list.count;
}

}  // namespace pgwarp
