#include "postgres/client/batch_search.h"

#include "postgres/settings.h"
#include "postgres/storage/included_tuple.h"

namespace pgwarp
{

namespace
{

// Give each query of a request its own results.
void take_answers(const EngineReply& reply, BatchPart* part, BatchAnswer* answers)
{
    const uint32 count = part->request.query_count;
    const BatchReply copied = read_batch_reply(reply.payload, reply.payload_bytes, count, part->request.k);
    part->reply = copied.header;
    const Result* results = copied.results;
    const uint64* places = copied.places;
    for (uint32 i = 0; i < count; ++i) {
        answers[i] = {part, results, places, copied.counts[i], 0, 0, nullptr};
        results += copied.counts[i];
        if (places != nullptr) places += copied.counts[i];
    }
}

void prepare_request(const BatchQueries& queries, const IndexState& state, SearchRequest* request)
{
    prepare_in_style(queries.style, queries.index, state, queries.wanted, request);
}

// The number of leading queries of some that one request takes, and their predicates.
uint32 queries_of_request(const BatchQueries& queries, uint32 first, const SearchRequest& request,
                          SearchPredicates* predicates)
{
    const auto count = static_cast<uint32>(queries.rows.count) - first;
    const RowView rows = queries.rows.slice(first, count);
    *predicates = {};
    if (queries.predicates == nullptr) return queries_per_request(rows, request);
    const uint32 some = queries_per_request(rows, request, predicate_bytes(count));
    return gather_predicates(queries.predicates + first, some, predicates);
}

// The batch that the engine works on ahead. At most one reply is on its way: keep_begun_batch() receives it before this
// session sends another request.
struct BegunBatch {
    BatchAhead* ahead;
    MemoryContext context;  // of the answers
};
BegunBatch begun_batch = {nullptr, nullptr};

}  // namespace

void ask_for_places(Relation index, SearchRequest* request)
{
    if (!has_included_columns(index)) return;
    request->want_places = 1;
    // With places, each result takes twice the bytes, so a reply holds half of the results.
    request->k = Min(request->k, max_k / 2);
}

void prepare_in_style(const SearchStyle& style, Relation index, const IndexState& state, uint32 wanted,
                      SearchRequest* request)
{
    set_within(&request->settings, style.within);
    style.prepare(index, state, wanted, request);
    if (style.with_places) ask_for_places(index, request);
}

uint32 queries_per_request(const RowView& queries, const SearchRequest& request, uint64 others)
{
    const uint64 result_bytes = sizeof(Result) + (request.want_places != 0 ? sizeof(uint64) : 0);
    const uint64 by_query = sizeof(uint32) + result_bytes * request.k;
    const uint64 by_request = rows_within(queries, max_payload - sizeof(SearchRequest) - others);
    const uint64 by_reply = (max_payload - sizeof(SearchReply) - 16) / by_query;
    return static_cast<uint32>(Max(uint64{1}, Min(by_request, by_reply)));
}

uint32 queries_per_request(uint32 dimensions, const SearchRequest& request)
{
    return queries_per_request(dense_rows(nullptr, UINT32_MAX, dimensions), request);
}

void limit_request(SearchRequest* request)
{
    request->load_wait_ms = static_cast<uint32>(setting_load_wait_ms);
    request->fault = static_cast<uint16>(setting_fault);
}

BatchReply read_batch_reply(const char* payload, uint32 payload_bytes, uint32 queries, uint32 k)
{
    BatchReply out = {};
    const uint64 counts_at = sizeof(SearchReply);
    const uint64 results_at = counts_at + MAXALIGN(sizeof(uint32) * queries);
    bool good = payload_bytes >= results_at;
    uint64 end = results_at;
    if (good) {
        out.copy = static_cast<char*>(palloc(payload_bytes));
        memcpy(out.copy, payload, payload_bytes);
        memcpy(static_cast<void*>(&out.header), out.copy, sizeof(SearchReply));
        out.counts = reinterpret_cast<const uint32*>(out.copy + counts_at);
        out.results = reinterpret_cast<const Result*>(out.copy + results_at);
        uint64 total = 0;
        for (uint32 i = 0; i < queries; ++i) {
            good = good && out.counts[i] <= k;
            total += out.counts[i];
        }
        end += sizeof(Result) * total;
        if (out.header.has_places != 0) {
            out.places = reinterpret_cast<const uint64*>(out.copy + end);
            end += sizeof(uint64) * total;
        }
    }
    if (!good || out.header.query_count != queries || payload_bytes < end) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("pgwarp-engine sent a malformed reply to a search")));
    }
    return out;
}

BatchAnswer* search_batch(const BatchQueries& queries)
{
    const uint32 count = static_cast<uint32>(queries.rows.count);
    auto* answers = static_cast<BatchAnswer*>(palloc0(sizeof(BatchAnswer) * Max(1U, count)));
    for (uint32 first = 0; first < count;) {
        const IndexState state = read_index_state(queries.index);
        if (index_is_empty(state)) break;
        auto* part = static_cast<BatchPart*>(palloc0(sizeof(BatchPart)));
        SearchRequest& request = part->request;
        prepare_request(queries, state, &request);
        SearchPredicates predicates = {};
        const uint32 some = queries_of_request(queries, first, request, &predicates);
        limit_request(&request);
        const RowView rows = queries.rows.slice(first, some);
        take_answers(engine_search(queries.index, state, &request, rows, predicates), part, answers + first);
        first += some;
    }
    return answers;
}

void begin_batch(const BatchQueries& queries, BatchAhead* ahead)
{
    keep_begun_batch();
    *ahead = {};
    ahead->queries = queries;
    begun_batch = {ahead, CurrentMemoryContext};
    const IndexState state = read_index_state(queries.index);
    if (queries.rows.count == 0 || index_is_empty(state)) return;
    ahead->part = static_cast<BatchPart*>(palloc0(sizeof(BatchPart)));
    SearchRequest& request = ahead->part->request;
    prepare_request(queries, state, &request);
    if (queries_of_request(queries, 0, request, &ahead->predicates) < queries.rows.count) return;
    limit_request(&request);
    begin_search(queries.index, state, &request, queries.rows, &ahead->request, ahead->predicates);
}

BatchAnswer* finish_batch(BatchAhead* ahead)
{
    EngineReply reply;
    if (ahead->answers != nullptr || ahead->request.id == 0) return ahead->answers;
    if (!finish_search(&ahead->request, &reply)) return nullptr;
    auto* answers = static_cast<BatchAnswer*>(palloc(sizeof(BatchAnswer) * ahead->queries.rows.count));
    take_answers(reply, ahead->part, answers);
    ahead->answers = answers;
    return answers;
}

void keep_begun_batch()
{
    const BegunBatch batch = begun_batch;
    begun_batch.ahead = nullptr;
    if (batch.ahead == nullptr) return;
    MemoryContext outer = MemoryContextSwitchTo(batch.context);
    finish_batch(batch.ahead);
    MemoryContextSwitchTo(outer);
}

void drop_begun_batch(const BatchAhead* ahead)
{
    if (begun_batch.ahead == ahead) begun_batch.ahead = nullptr;
}

}  // namespace pgwarp
