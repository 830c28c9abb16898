// Small arithmetic shared by the clustering kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace pgwarp::cuda
{

// 2^exponent for -126 <= exponent <= 127.
__device__ inline float power_of_two(int exponent)
{
    return __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
}

// The e of 2^e <= |value| < 2^(e+1); 0 for zero.
__device__ inline int exponent_of(float value)
{
    const int biased = static_cast<int>((__float_as_uint(value) >> 23) & 255U);
    return value == 0 ? 0 : biased - 127;
}

// A value moved into a frame; squares and their sums stay finite.
__device__ inline float framed(float value, float scale, float origin)
{
    constexpr float largest = 1e15F;
    return fminf(fmaxf(fmaf(value, scale, -origin), -largest), largest);
}

}  // namespace pgwarp::cuda
