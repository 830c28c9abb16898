// Scores as integers whose ascending order is that of falling scores.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

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

}  // namespace pgwarp::cuda
