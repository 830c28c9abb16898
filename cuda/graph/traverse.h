// The traversals of a batch: from its starts each query goes through the graph to the rows that are to be ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/context.h"
#include "graph/rank.h"
#include "graph/search_shape.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// All on the device.
struct TraverseJob {
    const GraphView* view = nullptr;
    SearchShape shape;
    // [count][dimensions]: as asked; where the rows are halves: ivfadc's QueryView::moved.
    const float* queries = nullptr;
    float* query_copy = nullptr;                // [count][dimensions], or none: where queries, read once, are put
    const float* given = nullptr;               // the same as queries, in host memory, or none
    const std::uint32_t* query_bits = nullptr;  // [count][words], where rows are bits
    const std::uint32_t* starts = nullptr;      // [count][shape.offered]: row numbers, or no_row_here
    bool repeated_starts = false;               // a row may be there twice
    const std::uint32_t* dead = nullptr;        // bit per row, or none: these rows are passed through
    std::uint32_t count = 0;
    std::uint32_t* rows = nullptr;   // [count][shape.wanted]: the nearest first
    std::uint32_t* found = nullptr;  // [count]: how many
    // Where shape.ranks: what rank_found() takes of the queries, and its answers [count][k], instead of rows and found.
    RankQueries rank;
    std::uint32_t k = 0;
    ivfadc::Answers answers{};
    TraversalCounts* work = nullptr;  // [count], or none: for benchmarks
    bool chained = false;             // launched as chained_launch.cuh says
};

// Asynchronous; launches of at most shape.launch_queries.
void traverse(const TraverseJob& job, cudaStream_t stream);

// The kernels behind it that are in a file of their own: SONG's other choices, and queries of a warp or less.
void traverse_by_options(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
