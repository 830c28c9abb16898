// A search of a batch on the device: its plan, the workspace for it, and its launches.
//
// Steps: coarse scores of all centroids, the probes of each query, scores of the rows in the probed lists, and values
// of the best candidates. Scores are kept in one of three ways:
//   dense    every score is written, and the best are selected from them: small batches, and queries that overflow
//            their limit;
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

// In a wide search k is `wanted`.
struct SearchPlan : ChunkPlan {
    std::uint32_t probes = 0;
    std::uint32_t wanted = 0;  // candidates ranked by their values
    bool wide = false;
    bool limited = false;
    bool sorted = false;            // pairs are sorted by list, so that each list is read once a batch
    bool few = false;               // few_queries.h does the first steps, and queries may lie in page-locked memory
    bool grouped = false;           // finish_groups() finds the candidates, and the host may poll `found`
    std::uint32_t first_ranks = 0;  // nearest lists that set the limit; all probes where not limited
    std::size_t coarse_stride = 0;  // floats of a query
    std::size_t dense_stride = 0;   // floats of a query
    std::uint32_t capacity = 0;     // candidates of a query where limited
    std::uint64_t most_items = 0;
    bool decoded = false;            // codes are decoded once, into the workspace
    std::uint32_t shared_bytes = 0;  // the most shared memory of a block
};

// Plans a search of the first plan.count <= count queries: workspace and the length of launches are bounded. wanted <=
// rows, probes <= lists, k <= wanted. room: free bytes of device memory, of which workspace and queries take at most
// three quarters, unless a single query takes more.
SearchPlan plan_search(const Mirror& mirror, std::size_t count, std::size_t probes, std::size_t wanted, std::size_t k,
                       bool may_limit, std::size_t room = ~std::size_t{0});

// Enqueues the search of a chunk by its plan. dead: one bit for each position, or null. Answers: as in finish.h. Throws
// CudaError.
void enqueue_search(const Mirror& mirror, const SearchPlan& plan, const Chunk& chunk, const std::uint32_t* dead);

// Returns the workspace of a continuation.
std::size_t continuation_bytes(const Mirror& mirror);
// Finds the first plan.k rows after a cursor for one query, by the values of all rows. dead: as above.
void enqueue_continuation(const Mirror& mirror, const ChunkPlan& plan, const Chunk& chunk, const RowCursor& after,
                          const std::uint32_t* dead);

}  // namespace pgwarp::cuda::ivfadc
