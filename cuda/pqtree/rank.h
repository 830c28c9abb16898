// The ranking of proposals by the values of their rows. All functions are asynchronous and throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "pqtree/propose.h"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

// The shared memory of a block of rank_proposals(), at most.
std::size_t rank_shared_bytes(const MirrorView& mirror, const ProposePlan& plan);

// Ranks the best plan.wanted proposals of each query, in any order, by (value, row) and writes the first k. queries
// [count][dimensions] on the device. polled: the host polls out.found. A few queries get large blocks.
void rank_proposals(const MirrorView& mirror, const float* queries, std::uint32_t count, const Proposals& proposals,
                    const ProposePlan& plan, std::uint32_t k, bool polled, const Answers& out, cudaStream_t stream);

// Writes the proposals as answers [count][wanted]: their values are scores.
void answer_proposals(const MirrorView& mirror, std::uint32_t count, const Proposals& proposals, std::uint32_t wanted,
                      const Answers& out, cudaStream_t stream);

// values[i] = the value of position first + i for one query on the device, i < count; NaN in padding.
void all_values(const MirrorView& mirror, const float* query, std::uint32_t first, std::uint32_t count, double* values,
                cudaStream_t stream);

}  // namespace pgwarp::cuda::pqtree
