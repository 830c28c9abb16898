// Scores as integers whose ascending order is that of falling scores.
#pragma once

#include <cstdint>

#include "select/order_bits.h"

namespace pgwarp::cuda
{

// Smaller for larger scores.
__device__ inline std::uint32_t descending_bits(float score)
{
    return ~order_of(score);
}

__device__ inline float score_of_bits(std::uint32_t bits)
{
    return float_of_order(~bits);
}

}  // namespace pgwarp::cuda
