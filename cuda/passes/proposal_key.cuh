// Proposals as integers that ascend while scores descend.
#pragma once

#include <cstdint>

#include "distance/proposals.h"
#include "distance/score_bits.cuh"

namespace pgwarp::cuda
{

inline constexpr std::uint64_t no_proposal = ~std::uint64_t{0};

__device__ inline std::uint64_t proposal_key(const Proposal& proposal)
{
    return std::uint64_t{descending_bits(proposal.score)} << 32 | proposal.position;
}

__device__ inline float score_of(std::uint64_t key)
{
    return score_of_bits(static_cast<std::uint32_t>(key >> 32));
}

// The score above which a slot's entries hold all rows, provided that no entry was lost.
__device__ inline float complete_above(const Proposals& proposals, std::uint32_t slot)
{
    if (proposals.left_out == nullptr) return proposals.thresholds[slot];
    const std::uint32_t left_out = proposals.left_out[slot];
    return left_out == 0 ? -INFINITY : score_of_bits(~left_out);
}

}  // namespace pgwarp::cuda
