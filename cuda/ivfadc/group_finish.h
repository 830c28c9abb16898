// The last step of small batches: candidates are found by the least scores of groups, not by reading all scores.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ivfadc/finish.h"

namespace pgwarp::cuda::ivfadc
{

// finish_dense() for scores with minima and probes with groups: the wanted-th smallest minimum bounds the wanted-th
// smallest score, so only the groups within that bound are read. All that the bound lets through is ranked by value
// where that is not much more than wanted. wanted <= 1024.
// out.found of a query is written after its answers are visible to the host: page-locked memory may be polled.
void finish_groups(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                   const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                   const Answers& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
