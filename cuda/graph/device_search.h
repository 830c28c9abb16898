// A search of a batch on the device: its workspace and its launches. Queries are prepared, compared with the seeds, go
// through the graph, and what they find is ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/searcher.h"
#include "graph/launch_config.h"
#include "graph/mirror.h"
#include "rows/ordered_rows.h"

namespace pgwarp::cuda::graph
{

// k is at most shape.wanted.
struct SearchPlan : ChunkPlan {
    LaunchConfig shape;
    bool chained = false;            // so few queries that launches overlap
    bool direct = false;             // the traversal reads the queries once, and copies them for the ranking
    std::uint32_t rank_queries = 0;  // of a launch that ranks: reading over the bus takes long
};

// The plan for the first queries of at most `count`: plan.count may be less, as workspace is bounded. `room`: device
// memory to be had. plan.shape.shared_bytes may be more than a block can have: then there is no such search here.
SearchPlan plan_search(const Mirror& mirror, const ParameterList& settings, std::size_t ef, std::size_t k,
                       std::size_t count, std::size_t room = ~std::size_t{0});

// Enqueues the search of a chunk by its plan. The queries in chunk.given may go with the launch: they are there sooner
// than those read over the bus. dead: a bit a row, or none. found[q]: rows that were ranked, at least as many as there
// are answers. work: [count] on the device, or none.
void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead,
                    TraversalCounts* work);

// The `wanted` first rows after a cursor, for one query: all rows get their values. dead as above.
ChunkPlan plan_continuation(const Mirror& mirror, std::uint32_t wanted);
void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const rows::RowCursor& after,
                          const std::uint32_t* dead);

}  // namespace pgwarp::cuda::graph
