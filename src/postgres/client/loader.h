// One search through the engine: sends the request, and sends the arrays, delta and tombstones that the mirror lacks.
#pragma once

#include "postgres/client/connection.h"
#include "postgres/client/index_state.h"
#include "postgres/client/search_predicates.h"

namespace pgwarp
{

// Names the state of the index to be searched: fills request.key, delta_end and tombstone_version.
void address_request(Relation index, const IndexState& state, SearchRequest* request);

// Addresses the request, describes the queries and their predicates in it, sends it with them, loads missing data into
// the mirror, and returns the answered reply. Under the cosine metric the caller passes dense queries normalised.
// Raises errors of the engine.
EngineReply engine_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries,
                          const SearchPredicates& predicates = {});

// The same in two steps, for a batch of queries that the engine works on while its results are not needed yet.
// `request`, `queries` and `predicates` must stay unchanged until the second step. Without a connection the first step
// does nothing.
void begin_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries,
                  RequestAhead* ahead, const SearchPredicates& predicates = {});
// Returns false if the search was not begun or was refused, if its reply is lost, or if the mirror lacks something: the
// caller then calls engine_search().
bool finish_search(RequestAhead* ahead, EngineReply* reply);

}  // namespace pgwarp
