// Many searches of one index with equal settings, in as few requests as the frame size allows: for k-NN joins and for
// the functions that search in batches.
#pragma once

#include "postgres/client/loader.h"
#include "protocol/search_bound.h"

namespace pgwarp
{

// Returns the number of these queries, at least one, that fit one request with this plan (k, want_places), beside
// `others` bytes, and whose answers fit its reply.
uint32 queries_per_request(const RowView& queries, const SearchRequest& request, uint64 others = 0);
// The same for any number of dense queries.
uint32 queries_per_request(uint32 dimensions, const SearchRequest& request);

// Fills the fields of a request that PrepareSearch and describe_queries() leave: wait limits and faults for tests.
void limit_request(SearchRequest* request);

// The reply to a request, copied: expressions that the executor evaluates for a row may send requests of their own,
// which overwrite the receive buffer.
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
    uint32 passing;       // results that are known to pass this filter
    const uint32* ranks;  // of the results among all, where some were left out; otherwise null
};

// Fills the index's own part of a request: k, effort, settings. Called for each request, with the index state that the
// request names.
using PrepareSearch = void (*)(Relation index, const IndexState& state, uint32 wanted, SearchRequest* request);

// The form of a search: the routine that prepares its requests, and the wanted parts of its results.
struct SearchStyle {
    PrepareSearch prepare;
    bool with_places;          // results tell their places where the index has included columns
    double within = no_bound;  // the largest distance that the searches are for (protocol/search_bound.h)
};
// Makes the request's own part in this style. Places may lower request->k.
void prepare_in_style(const SearchStyle& style, Relation index, const IndexState& state, uint32 wanted,
                      SearchRequest* request);
// Makes a prepared request ask for the results' places where the index has included columns. May lower request->k.
void ask_for_places(Relation index, SearchRequest* request);

// Queries that are searched for with equal settings.
struct BatchQueries {
    Relation index;
    SearchStyle style;
    uint32 wanted;                     // rows that each search is for
    RowView rows;                      // the queries in the form that the engine expects
    const QueryPredicate* predicates;  // of all queries, or null
};

// Searches for each of the queries. Answers, parts and results are palloc'ed in the current memory context. Raises
// errors of the engine.
BatchAnswer* search_batch(const BatchQueries& queries);

// A batch that the engine works on while its answers are not needed yet.
struct BatchAhead {
    BatchQueries queries;
    BatchPart* part;
    SearchPredicates predicates;
    RequestAhead request;
    BatchAnswer* answers;  // null until the reply is received
};
// Sends the batch if all queries fit one request and a connection is open; otherwise finish_batch() returns null.
// Receives the reply to the previously begun batch first.
void begin_batch(const BatchQueries& queries, BatchAhead* ahead);
// Returns the answers, palloc'ed as above; waits for the reply if need be. Null when the reply is lost or was
// discarded: the caller then calls search_batch().
BatchAnswer* finish_batch(BatchAhead* ahead);
// Receives the reply to the batch begun last, if it is still on its way, because the next request would discard it. The
// answers are palloc'ed in the memory context that was current when the batch was begun.
void keep_begun_batch();
// Forgets the begun batch if it is this one; null has no effect.
void drop_begun_batch(const BatchAhead* ahead);

}  // namespace pgwarp
