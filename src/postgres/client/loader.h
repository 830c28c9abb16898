// Searching through the engine: sends a request, and supplies the arrays, delta and tombstones that the mirror lacks.
#pragma once

#include "postgres/client/connection.h"
#include "postgres/client/index_state.h"
#include "protocol/rows.h"

namespace pgwarp
{

// Says which state of the index is to be searched: fills request.key, delta_end and tombstone_version.
void address_request(Relation index, const IndexState& state, SearchRequest* request);

// Addresses the request, describes the queries in it, sends it with them (dense ones normalised by the caller when the
// metric is cosine), supplies the mirror, and returns the answered reply.
EngineReply engine_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries);

// The same in two steps, for a batch of queries that the engine works on while its results aren't needed yet.
// `request` and `queries` must stay as they are. Without a connection the first step does nothing.
void begin_search(Relation index, const IndexState& state, SearchRequest* request, const RowView& queries,
                  RequestAhead* ahead);
// False: it was not begun or was refused, its answer is gone, or the mirror lacks something; engine_search() is to be
// called.
bool finish_search(RequestAhead* ahead, EngineReply* reply);

}  // namespace pgwarp
