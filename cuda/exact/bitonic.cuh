// Bitonic sort of a power of two of keys in shared memory, by a whole block.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

__device__ inline std::uint32_t power_of_two_from(std::uint32_t n)
{
    return n <= 1 ? 1 : 1U << (32 - __clz(static_cast<int>(n - 1)));
}

// compare_exchange(i, j) puts the smaller of two into i. Synchronizes before and after.
template <class CompareExchange>
__device__ void bitonic_sort(std::uint32_t count, const CompareExchange& compare_exchange)
{
    __syncthreads();
    for (std::uint32_t size = 2; size <= count; size *= 2) {
        for (std::uint32_t half = size / 2; half > 0; half /= 2) {
            for (std::uint32_t i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const std::uint32_t low = (i & ~(half - 1)) << 1 | (i & (half - 1));
                // The first step of a size compares from the outside in; thus all runs are ascending.
                const std::uint32_t high = half == size / 2 ? low ^ (size - 1) : low + half;
                compare_exchange(low, high);
            }
            __syncthreads();
        }
    }
}

__device__ inline void sort_keys(std::uint64_t* keys, std::uint32_t count)
{
    bitonic_sort(count, [&](std::uint32_t i, std::uint32_t j) {
        const std::uint64_t a = keys[i];
        const std::uint64_t b = keys[j];
        if (b < a) {
            keys[i] = b;
            keys[j] = a;
        }
    });
}

// By key, then by row.
__device__ inline void sort_rows(std::uint64_t* keys, std::uint32_t* rows, std::uint32_t count)
{
    bitonic_sort(count, [&](std::uint32_t i, std::uint32_t j) {
        const std::uint64_t a = keys[i];
        const std::uint64_t b = keys[j];
        const std::uint32_t row_a = rows[i];
        const std::uint32_t row_b = rows[j];
        if (b < a || (b == a && row_b < row_a)) {
            keys[i] = b;
            keys[j] = a;
            rows[i] = row_b;
            rows[j] = row_a;
        }
    });
}

}  // namespace pgwarp::cuda
