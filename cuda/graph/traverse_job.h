// The arguments of the traversals of a batch: queries, starts and outputs.
#pragma once

#include <cstdint>

#include "device/answers.h"
#include "graph/launch_config.h"
#include "graph/view.h"
#include "rows/row_filter.h"

namespace pgwarp::cuda::graph
{

// All arrays are on the device, except `given`.
struct TraverseJob {
    const GraphView* view = nullptr;
    LaunchConfig shape;
    // [count][dimensions]: as given, or, where rows are compared as halves, rows::QueryView::moved.
    const float* queries = nullptr;
    float* query_copy = nullptr;                // [count][dimensions], or null: copies of queries read from the host
    const float* given = nullptr;               // the queries in host memory, or null
    const std::uint32_t* query_bits = nullptr;  // [count][words], where rows are bits
    const std::uint32_t* starts = nullptr;      // [count][shape.offered]: row numbers, or no_row_here
    bool repeated_starts = false;               // a row may occur twice
    const std::uint32_t* dead = nullptr;        // one bit for each row, or null: rows that are never returned
    rows::FilterView filters;                   // of rows that are returned
    std::uint32_t count = 0;
    std::uint32_t* rows = nullptr;   // [count][shape.wanted]: the nearest first
    std::uint32_t* found = nullptr;  // [count]: numbers of rows
    // Where shape.ranks: the queries as rank_found() takes them, and answers [count][k] in place of rows and found.
    RankQueries rank;
    std::uint32_t k = 0;
    Answers answers{};
    TraversalCounts* work = nullptr;  // [count], or none: for benchmarks
    bool chained = false;             // launched early (chained_launch.cuh)
};

}  // namespace pgwarp::cuda::graph
