// A search of a batch on the device: which way it takes, what workspace that needs, and its launches.
//
// Coarse scores of all centroids -> probes of each query -> scores of the rows in them -> the best by their values.
// Scores go by one of three ways:
//   dense    every score is written, the best are selected from them: small batches, and whatever overflows a limit;
//   limited  the lists nearest to a query set a limit, and of the other lists only scores within it are kept: large
//            batches;
//   wide     dense, with more candidates than a block sorts: the best in any order, for the host to sort.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/searcher.h"
#include "ivfadc/finish.h"
#include "ivfadc/mirror.h"
#include "rows/ordered_rows.h"

namespace pgwarp::cuda::ivfadc
{

// k is `wanted` in a wide search.
struct SearchPlan : ChunkPlan {
    std::uint32_t probes = 0;
    std::uint32_t wanted = 0;  // candidates ranked by their values
    bool wide = false;
    bool limited = false;
    bool sorted = false;            // pairs sorted by list: each list is read once a batch
    bool few = false;               // few_queries.h takes the first steps: queries may lie in page-locked memory
    bool grouped = false;           // candidates by the least scores of groups; `found` may be polled
    std::uint32_t first_ranks = 0;  // nearest lists that set the limit; all probes unless limited
    std::size_t coarse_stride = 0;  // floats of a query
    std::size_t dense_stride = 0;   // floats of a query
    std::uint32_t capacity = 0;     // candidates of a query, limited
    std::uint32_t most_items = 0;
    bool decoded = false;            // codes are decoded once, into the workspace
    std::uint32_t shared_bytes = 0;  // that a block may have
};

// The plan for the first queries of at most `count`: plan.count may be less, as workspace and the length of launches
// are bounded. wanted <= rows, probes <= lists, k <= wanted. `room`: device memory to be had, of which the workspace is
// not to take much more than half.
SearchPlan plan_search(const Mirror& mirror, std::size_t count, std::size_t probes, std::size_t wanted, std::size_t k,
                       bool may_limit, std::size_t room = ~std::size_t{0});

// Enqueues the search of a chunk by its plan. dead: a bit per position, or none. Answers as finish.h says.
void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead);

// The `wanted` first rows after a cursor, for one query: all rows get their values. dead as above.
ChunkPlan plan_continuation(const Mirror& mirror, std::uint32_t wanted);
void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const RowCursor& after,
                          const std::uint32_t* dead);

}  // namespace pgwarp::cuda::ivfadc
