// Proposals as integers whose ascending order is that of falling scores.
#pragma once

#include <cstdint>

#include "distance/proposals.h"

namespace pgwarp::cuda
{

inline constexpr std::uint64_t no_proposal = ~std::uint64_t{0};

// 0 for the largest score.
__device__ inline std::uint32_t descending_bits(float score)
{
    const std::uint32_t bits = __float_as_uint(score);
    return (bits >> 31) != 0 ? bits : ~bits & 0x7FFFFFFFU;
}

__device__ inline float score_of_bits(std::uint32_t bits)
{
    return __uint_as_float((bits >> 31) != 0 ? bits : ~bits & 0x7FFFFFFFU);
}

__device__ inline std::uint64_t proposal_key(const Proposal& proposal)
{
    return std::uint64_t{descending_bits(proposal.score)} << 32 | proposal.position;
}

__device__ inline float score_of(std::uint64_t key)
{
    return score_of_bits(static_cast<std::uint32_t>(key >> 32));
}

}  // namespace pgwarp::cuda
