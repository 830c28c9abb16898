// Products of a query in single precision with rows of halves. 16 lanes share a row.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ivfadc/layout.h"

namespace pgwarp::cuda::ivfadc
{

inline constexpr int dot_lanes = 16;

// The row, of those that a warp reads, whose product the calling lane gets, where each lane holds `values` values.
__device__ inline std::uint32_t dot_row(int values)
{
    return threadIdx.x % 32 % dot_lanes * values / dot_lanes * 2 + threadIdx.x % 32 / dot_lanes;
}

__device__ inline float dot_piece(const uint4& halves, const float4& a, const float4& b, float sum)
{
    const float2 h0 = __half22float2(*reinterpret_cast<const __half2*>(&halves.x));
    const float2 h1 = __half22float2(*reinterpret_cast<const __half2*>(&halves.y));
    const float2 h2 = __half22float2(*reinterpret_cast<const __half2*>(&halves.z));
    const float2 h3 = __half22float2(*reinterpret_cast<const __half2*>(&halves.w));
    sum = fmaf(h0.x, a.x, sum);
    sum = fmaf(h0.y, a.y, sum);
    sum = fmaf(h1.x, a.z, sum);
    sum = fmaf(h1.y, a.w, sum);
    sum = fmaf(h2.x, b.x, sum);
    sum = fmaf(h2.y, b.y, sum);
    sum = fmaf(h3.x, b.z, sum);
    return fmaf(h3.y, b.w, sum);
}

// Sums over 16 lanes that hold Values (a power of two) values each: lane i gets the sum of value i * Values / 16.
template <int Values>
__device__ float transposed_sum(float (&values)[Values])
{
    const int lane = threadIdx.x % dot_lanes;
    int step = dot_lanes / 2;
#pragma unroll
    for (int left = Values / 2; left > 0; left /= 2) {
        const bool upper = (lane & step) != 0;
#pragma unroll
        for (int i = 0; i < left; ++i) {
            const float kept = upper ? values[i + left] : values[i];
            const float given = upper ? values[i] : values[i + left];
            values[i] = kept + __shfl_xor_sync(0xffffffffU, given, step);
        }
        step /= 2;
    }
    for (; step > 0; step /= 2) values[0] += __shfl_xor_sync(0xffffffffU, values[0], step);
    return values[0];
}

// The product of the query and row dot_row(Values) of the warp's 2 * Values rows [..][stride]. 2 * Batch rows are
// loaded at a time. query: [stride] in shared memory, zeros from the dimensions on. stride: a multiple of 8.
template <int Values, int Batch>
__device__ float dot_rows(const __half* rows, std::uint32_t stride, const float4* query)
{
    const __half* first = rows + static_cast<std::size_t>(threadIdx.x % 32 / dot_lanes) * stride;
    float values[Values] = {};
    for (std::uint32_t piece = threadIdx.x % dot_lanes; piece * 8 < stride; piece += dot_lanes) {
        const float4 a = query[piece * 2];
        const float4 b = query[piece * 2 + 1];
#pragma unroll
        for (int begin = 0; begin < Values; begin += Batch) {
            uint4 halves[Batch];
#pragma unroll
            for (int i = 0; i < Batch; ++i) {
                halves[i] = *reinterpret_cast<const uint4*>(first + static_cast<std::size_t>(begin + i) * 2 * stride +
                                                            piece * 8);
            }
#pragma unroll
            for (int i = 0; i < Batch; ++i) values[begin + i] = dot_piece(halves[i], a, b, values[begin + i]);
        }
    }
    return transposed_sum(values);
}

}  // namespace pgwarp::cuda::ivfadc
