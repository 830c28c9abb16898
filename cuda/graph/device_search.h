// A search of a batch on the device: its workspace and its launches. The queries are prepared and compared with the
// seeds, the graph is traversed, and the rows found are ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/searcher.h"
#include "graph/launch_config.h"
#include "graph/mirror.h"
#include "rows/ordered_rows.h"
#include "rows/sent_filters.h"

namespace pgwarp::cuda::graph
{

// k is at most shape.wanted.
struct SearchPlan : ChunkPlan {
    LaunchConfig shape;
    bool chained = false;  // launches overlap, as the queries are few
    bool direct = false;   // the traversal reads the queries in place and copies them for the ranking
    rows::SentFilters filters;
    std::uint32_t rank_queries = 0;  // queries of a launch that ranks: bounded, as reading over the bus takes long
};

// Plans a search of the first plan.count <= count queries, as workspace is bounded. room: bytes of free device memory.
// Where plan.shape.shared_bytes exceeds the shared memory of a block, the search cannot run on the device. filters: of
// the first queries, or none.
SearchPlan plan_search(const Mirror& mirror, const ParameterList& settings, std::size_t ef, std::size_t k,
                       std::size_t count, std::size_t room = ~std::size_t{0}, rows::SentFilters filters = {});

// Enqueues the search of a chunk by its plan. A single query in chunk.given may travel with the launch, which is faster
// than a read over the bus. dead: one bit for each row, or null. found[q]: number of rows ranked, at least the number
// of answers. work: [count] on the device, or null. pool: writes the predicates. Throws CudaError.
void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead,
                    TraversalCounts* work, ThreadPool& pool = caller_alone());

// Returns the workspace of a continuation.
std::size_t continuation_bytes(const Mirror& mirror);
// Finds the first plan.k rows after a cursor for one query, by the values of all rows. dead: as above.
void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const rows::RowCursor& after,
                          const std::uint32_t* dead);

}  // namespace pgwarp::cuda::graph
