// What a traversal is given: its queries, where it begins, and where its answers go.
#pragma once

#include <cstdint>

#include "device/answers.h"
#include "graph/launch_config.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// All on the device.
struct TraverseJob {
    const GraphView* view = nullptr;
    LaunchConfig shape;
    // [count][dimensions]: as asked; where the rows are halves: rows::QueryView::moved.
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
    Answers answers{};
    TraversalCounts* work = nullptr;  // [count], or none: for benchmarks
    bool chained = false;             // launched as chained_launch.cuh says
};

}  // namespace pgwarp::cuda::graph
