// Thresholds of the filter: the score of a certain rank among the positions seen so far. A threshold serves for the
// next range of positions and is tightened after it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "distance/proposals.h"

namespace pgwarp::cuda
{

// thresholds[slot] = just below the keep-th largest of the slot's maxima [width]; -infinity where width < keep,
// +infinity for queries that are not usable. width: a power of two up to 8192. Asynchronous, like all functions here.
// Throws CudaError.
void thresholds_from_maxima(const PreparedQueries& queries, const float* maxima, std::uint32_t width,
                            std::uint32_t keep, float* thresholds, cudaStream_t stream);

// Cuts each slot's entries to the `keep` best and those equal to the last of them, and raises its threshold to just
// below their scores. Sets incomplete[slot] where entries were lost, as then nothing can be proved any more.
void tighten_thresholds(const PreparedQueries& queries, const Proposals& proposals, std::uint32_t keep,
                        float* thresholds, std::uint32_t* incomplete, cudaStream_t stream);

// thresholds[slot] = given[slot], or +infinity where the query is not usable.
void take_thresholds(const PreparedQueries& queries, const float* given, float* thresholds, cudaStream_t stream);

// thresholds[slot] = -infinity, or +infinity where the query is not usable.
void open_thresholds(const PreparedQueries& queries, float* thresholds, cudaStream_t stream);

}  // namespace pgwarp::cuda
