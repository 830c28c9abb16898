// The last step of small batches: the least scores of groups find the candidates, so that most scores are not read.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ivfadc/finish.h"

namespace pgwarp::cuda::ivfadc
{

// Does the work of finish_dense() for scores with minima and probes with groups. The wanted-th smallest minimum bounds
// the wanted-th smallest score, so only the groups within that bound are read. Where not many more than `wanted` scores
// are within the bound, all of them are ranked by value. wanted <= 1024. out.found of a query is written after its
// answers are visible to the host, which may poll page-locked memory. Throws CudaError.
void finish_groups(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                   const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                   const Answers& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
