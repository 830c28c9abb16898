// A search of a batch on the device: its workspace and its launches. Queries are prepared, compared with the seeds, go
// through the graph, and what they find is ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/mirror.h"
#include "graph/search_shape.h"
#include "rows/view.h"

namespace pgwarp::cuda::graph
{

struct SearchPlan {
    SearchShape shape;
    std::uint32_t count = 0;         // queries
    std::uint32_t k = 0;             // answers a query, at most shape.wanted
    bool chained = false;            // so few queries that launches overlap; `found` may be polled
    bool direct = false;             // the queries are read once: they may lie in page-locked host memory
    std::uint32_t rank_queries = 0;  // of a launch that ranks: reading over the bus takes long
    std::size_t workspace = 0;       // bytes
};

// The plan for the first queries of at most `count`: plan.count may be less, as workspace is bounded. `room`: device
// memory to be had. plan.shape.shared_bytes may be more than a block can have: then there is no such search here.
SearchPlan plan_search(const Mirror& mirror, const ParameterList& settings, std::size_t ef, std::size_t k,
                       std::size_t count, std::size_t room = ~std::size_t{0});

// Enqueues the search of plan.count queries [count][dimensions], on the device or where plan.direct allows. given: the
// same in host memory, or none: what goes with a launch is there sooner than what is read over the bus. dead: a bit per
// row, or none. Answers [count][k] on the device or pinned; found[q]: rows that were ranked, at least as many as there
// are answers. `workspace` is plan.workspace bytes of device memory, work [count] on the device or none.
void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const float* queries, const float* given,
                    const std::uint32_t* dead, std::byte* workspace, const rows::Answers& out, TraversalCounts* work,
                    cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
