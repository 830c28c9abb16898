// Many searches of one index with equal settings, in as few requests as the frames allow: for k-NN joins and for the
// functions that search in batches.
#pragma once

#include "postgres/client/loader.h"

namespace pgwarp
{

// How many of these queries, at least one, a request with this plan (k, want_places), and its reply, have room for.
uint32 queries_per_request(const RowView& queries, const SearchRequest& request);
// The same of any number of dense queries.
uint32 queries_per_request(uint32 dimensions, const SearchRequest& request);

// Fills the fields of a request that a PrepareSearch and describe_queries() leave: waits, faults.
void limit_request(SearchRequest* request);

// The answer to a request, copied: expressions that are evaluated for a row may send requests of their own.
struct BatchReply {
    SearchReply header;
    char* copy;            // palloc'ed
    const uint32* counts;  // [queries]
    const Result* results;
    const uint64* places;  // of the results, or null
};
// Raises an error unless the reply has at most `k` results for each of `queries`.
BatchReply read_batch_reply(const char* payload, uint32 payload_bytes, uint32 queries, uint32 k);

// The part that all answers of one request share.
struct BatchPart {
    SearchRequest request;  // as it was answered: k, effort, generation
    SearchReply reply;
};

// The answer to one query, in the engine's order.
struct BatchAnswer {
    const BatchPart* part;  // null: the index has no row
    const Result* results;
    const uint64* places;  // of the results, or null
    uint32 count;
    uint32 dropped;       // results that a filter left out
    const uint32* ranks;  // of the results among all, where some were left out; otherwise null
};

// Fills a request's own part: k, effort, settings. Called for each request, with the state it is sent under.
using PrepareSearch = void (*)(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);

struct SearchStyle {
    PrepareSearch prepare;
    bool with_places;  // results tell their places where the index has included columns
};
// Where the index has included columns: has the results of a request, prepared but for this, tell their places.
void ask_for_places(Relation index, SearchRequest* request);

// Queries that are all searched for alike.
struct BatchQueries {
    Relation index;
    SearchStyle style;
    uint32 wanted;  // rows that each search is for
    RowView rows;   // the queries, as the engine wants them
};

// Searches for each of the queries. Answers, parts and results are palloc'ed in the current memory context.
BatchAnswer* search_batch(const BatchQueries& queries);

// A batch that the engine works on while its answers aren't needed yet.
struct BatchAhead {
    BatchQueries queries;
    BatchPart* part;
    RequestAhead request;
    BatchAnswer* answers;  // once they were received
};
// Begins where all queries fit one request and there is a connection; else finish_batch() will find nothing. The batch
// begun before is kept.
void begin_batch(const BatchQueries& queries, BatchAhead* ahead);
// The answers, palloc'ed as above, waited for if need be. Null when they are gone: search_batch() is to be called.
BatchAnswer* finish_batch(BatchAhead* ahead);
// Takes the reply to the batch that was begun last, if it is still on its way: another request would throw it away.
// Its answers are palloc'ed in the memory context that was current when it was begun.
void keep_begun_batch();
// Forgets that the batch was begun; null is none.
void drop_begun_batch(const BatchAhead* ahead);

}  // namespace pgwarp
