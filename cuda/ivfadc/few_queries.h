// The first steps of a search of few queries, in two launches: scores of all centroids in single precision, and ranking
// of the lists. Many short blocks work on each query, so that one query keeps many multiprocessors busy.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/probes.h"
#include "ivfadc/view.h"
#include "rows/queries.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr std::uint32_t few_queries = 16;
inline constexpr std::uint32_t few_lists = 2048;       // a block holds the scores of all lists
inline constexpr std::uint32_t few_dimensions = 4096;  // a block holds a query

// Writes the scores of all centroids [count][stride], smaller is nearer, infinite for padding. Also writes the queries
// to device memory: `original` [count][dimensions], and for_rows.moved and for_rows.norms as prepare_queries() does
// (halves and multipliers are not written). `given` [count][dimensions] may lie in page-locked host memory. count <=
// few_queries, lists <= few_lists, dimensions <= few_dimensions. Throws CudaError.
void score_centroids(const MirrorView& mirror, const float* given, std::uint32_t count, float* original,
                     const PreparedQueries& for_rows, float* coarse, std::size_t stride, cudaStream_t stream);

// Does the work of select_probes() by counting, for each list, the lists before it. Lists of equal scores keep the
// order of their numbers. A list whose score is out of range has an infinite constant.
void rank_lists(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
