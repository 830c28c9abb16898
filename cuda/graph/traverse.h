// The traversals of a batch: from its starts each query goes through the graph to the rows that are to be ranked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/traverse_job.h"

namespace pgwarp::cuda::graph
{

// Asynchronous; launches of at most shape.launch_queries.
void traverse(const TraverseJob& job, cudaStream_t stream);

// Behind it, in files of their own: SONG's other choices and queries of a warp or less; few queries, which have a
// multiprocessor each.
void traverse_by_options(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);
void traverse_alone(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);
void traverse_alone_wide(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
