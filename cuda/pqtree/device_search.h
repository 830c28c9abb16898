// A search of a chunk of queries on the device: its plan, the workspace for it, and its launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/searcher.h"
#include "methods/pqtree/pqtree.h"
#include "pqtree/mirror.h"
#include "pqtree/propose.h"
#include "rows/ordered_rows.h"

namespace pgwarp::cuda::pqtree
{

struct DevicePlan : ChunkPlan {
    ProposePlan propose;
    bool ranks = true;  // by values; else the answers are the proposals with their scores
};

// The request of a round of queries to the device.
struct SearchRequest {
    SearchPlan plan;
    std::size_t k = 0;
    double dead_share = 0;
    bool ranks = true;
};

// Whether a block's shared memory has room for the search of a query.
bool has_room(const Mirror& mirror, const SearchRequest& request);

// Plans a chunk of the first plan.count <= count queries: the length of its launches and the workspace are bounded. The
// rows that are ranked are at most most_proposed. Where they are not ranked by values, and a block has no room for all
// proposals, it makes fewer. room: free bytes of device memory. Throws std::bad_alloc where has_room() is false.
DevicePlan plan_chunk(const Mirror& mirror, const SearchRequest& request, std::size_t count, std::size_t room);

// Enqueues the search of a chunk. dead: one bit for each position, or null. Throws CudaError.
void enqueue_chunk(const Mirror& mirror, const DevicePlan& plan, const Chunk& chunk, const std::uint32_t* dead);

// Returns the workspace of a continuation.
std::size_t continuation_bytes(const Mirror& mirror);
// Finds the first plan.k rows after a cursor for one query, by the values of all rows.
void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const rows::RowCursor& after,
                          const std::uint32_t* dead);

}  // namespace pgwarp::cuda::pqtree
