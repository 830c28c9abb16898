// Reductions over the 32 lanes of a warp. All lanes call, and all get the result.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

template <class T>
__device__ T warp_sum(T value)
{
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
    return value;
}

template <class T>
__device__ T warp_least(T value)
{
    for (int step = 16; step > 0; step /= 2) value = min(value, __shfl_xor_sync(0xffffffffU, value, step));
    return value;
}

template <class T>
__device__ T warp_largest(T value)
{
    for (int step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(0xffffffffU, value, step));
    return value;
}

// Overloads with one instruction, from sm_80 on.
__device__ inline std::uint32_t warp_least(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(0xffffffffU, value);
#else
    return warp_least<std::uint32_t>(value);
#endif
}

__device__ inline std::uint32_t warp_largest(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffU, value);
#else
    return warp_largest<std::uint32_t>(value);
#endif
}

// The sum over the lanes up to the calling one, its own value included.
__device__ inline std::uint32_t warp_prefix_sum(std::uint32_t value)
{
    const int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        const std::uint32_t other = __shfl_up_sync(0xffffffffU, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// Returns a place for each thread that wants one: places of a warp are neighbours. All lanes of the warp call.
__device__ inline std::uint32_t take_place(bool wants, std::uint32_t* counter)
{
    const unsigned wanting = __ballot_sync(~0U, wants);
    const unsigned lane = threadIdx.x % 32;
    std::uint32_t first = 0;
    if (lane == 0 && wanting != 0) first = atomicAdd(counter, static_cast<std::uint32_t>(__popc(wanting)));
    return __shfl_sync(~0U, first, 0) + static_cast<std::uint32_t>(__popc(wanting & ((1U << lane) - 1)));
}

// The smallest key that at least `wanted` of a warp's keys do not exceed, found bit by bit. below(key) counts the keys
// of the calling lane that do not exceed `key`.
template <class Below>
__device__ std::uint32_t warp_limit(const Below& below, std::uint32_t wanted)
{
    std::uint32_t limit = 0;
    for (int bit = 31; bit >= 0; --bit) {
        if (warp_sum(below(limit | ((1U << bit) - 1))) < wanted) limit |= 1U << bit;
    }
    return limit;
}

}  // namespace pgwarp::cuda
