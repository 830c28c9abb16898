// The last step of a search: the rows found are ranked by the values that are returned. Values have the bits of
// src/methods/graph/stored_rows.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "graph/view.h"

namespace pgwarp::cuda::graph
{

// Ranks the found[q] rows of query q in rows [count][wanted]. out: [count][k] on the device or in page-locked memory;
// out.found[q] = found[q] is written last. wanted <= most_ef, k <= wanted. Asynchronous. Throws CudaError.
void rank_found(const GraphView& view, const RankQueries& queries, const std::uint32_t* rows,
                const std::uint32_t* found, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                const Answers& out, bool chained, cudaStream_t stream);

// values[i] = the value of row first + i for the first query, i < count. Asynchronous. Throws CudaError.
void all_values(const GraphView& view, const RankQueries& queries, std::uint32_t first, std::uint32_t count,
                double* values, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
