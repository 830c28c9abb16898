// The traversals of a batch: each query follows the graph from its starts to the rows that are ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/traverse_job.h"

namespace pgwarp::cuda::graph
{

// Asynchronous. Makes launches of at most shape.launch_queries. Throws CudaError.
void traverse(const TraverseJob& job, cudaStream_t stream);

// The parts of traverse(), in separate files, as they take long to compile: SONG's options and queries with a warp or
// less, and few queries, whose blocks have a multiprocessor each.
void traverse_by_options(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);
void traverse_exclusive(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);
void traverse_exclusive_wide(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
