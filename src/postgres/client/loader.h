// Searching through the engine: sends a request, and gives the engine what its mirror lacks (arrays, delta,
// tombstones).
#pragma once

#include "postgres/client/request.h"
#include "postgres/storage/directory.h"

namespace pgwarp
{

MirrorKey mirror_key(Relation index, const MetaPage& meta);

// What a scan knows of the index, read after its snapshot was taken. The directory is cached in rd_amcache by
// generation.
struct IndexState {
    MetaPage meta;
    uint64 delta_end[delta_log_count];
    Directory* directory;  // lives as long as the relcache entry's cache context; copy what must live longer
};
IndexState read_index_state(Relation index);
// The cached directory; null when the index is of another generation by now.
const Directory* directory_of_generation(Relation index, uint64 generation);
// True when the index has no row at all, dead ones included: then no engine need be asked.
bool index_is_empty(const IndexState& state);

// Says which state of the index is to be searched: fills request.key, delta_end and tombstone_version.
void address_request(Relation index, const IndexState& state, SearchRequest* request);

// Fills request.key, delta_end and tombstone_version from `state`, sends it with the queries (normalised by the caller
// when the metric is cosine), loads what the engine asks for, and returns the answered reply.
EngineReply engine_search(Relation index, const IndexState& state, SearchRequest* request, const float* queries);

// The same in two steps, for a batch of queries that the engine works on while its results aren't needed yet.
// `request` and `queries` must stay as they are. Without a connection the first step does nothing.
void begin_search(Relation index, const IndexState& state, SearchRequest* request, const float* queries,
                  RequestAhead* ahead);
// False: it was not begun or was refused, its answer is gone, or the mirror lacks something; engine_search() is to be
// called.
bool finish_search(RequestAhead* ahead, EngineReply* reply);

// Opens one of our indexes; only its owner gets past.
Relation open_owned_index(Oid oid, LOCKMODE lock);

// Brings the mirror up to date without a search (pgwarp_prewarm). Returns its bytes.
uint64 load_mirror(Relation index, const IndexState& state);

}  // namespace pgwarp
