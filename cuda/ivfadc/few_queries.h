// The first steps of a search of few queries, in two launches: scores of all centroids in single precision, then the
// lists to probe, each query by many blocks. Blocks are short, so that one query keeps many multiprocessors busy.
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

// Scores of all centroids [count][stride], smaller is nearer, infinite for padding; and the queries in device memory:
// `original` [count][dimensions], moved and norms as prepare_for_rows() has them (halves and multipliers are not
// written). `given` [count][dimensions] may lie in page-locked host memory. count <= few_queries,
// lists <= few_lists, dimensions <= few_dimensions.
void score_centroids(const MirrorView& mirror, const float* given, std::uint32_t count, float* original,
                     const PreparedQueries& for_rows, float* coarse, std::size_t stride, cudaStream_t stream);

// select_probes() by counting, for each list, what comes before it. Lists of equal scores come in their order. A list
// whose score is out of range has an infinite constant.
void rank_lists(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
