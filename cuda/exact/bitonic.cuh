// Sorts of keys in shared memory by a whole block: bitonic ones of a power of two, and for few keys, of which no two
// are the same, one that counts for each how many come before it: two barriers in place of dozens.
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

// Of at most so many keys, and threads, does counting take less time.
inline constexpr std::uint32_t counted_keys = 512;

__device__ inline bool counting_serves(std::uint32_t count)
{
    return count <= min(counted_keys, blockDim.x);
}

// The place of key `i` among `count`, one a thread.
template <class Before>
__device__ std::uint32_t place_of(std::uint32_t count, const Before& before)
{
    std::uint32_t place = 0;
#pragma unroll 8
    for (std::uint32_t j = 0; j < count; ++j) place += before(j) ? 1 : 0;
    return place;
}

__device__ inline void count_keys(std::uint64_t* keys, std::uint32_t count)
{
    __syncthreads();
    const bool own = threadIdx.x < count;
    const std::uint64_t key = own ? keys[threadIdx.x] : 0;
    const std::uint32_t place = own ? place_of(count, [&](std::uint32_t j) { return keys[j] < key; }) : 0;
    __syncthreads();
    if (own) keys[place] = key;
    __syncthreads();
}

// By key, then by row.
__device__ inline void count_rows(std::uint64_t* keys, std::uint32_t* rows, std::uint32_t count)
{
    __syncthreads();
    const bool own = threadIdx.x < count;
    const std::uint64_t key = own ? keys[threadIdx.x] : 0;
    const std::uint32_t row = own ? rows[threadIdx.x] : 0;
    const auto before = [&](std::uint32_t j) { return keys[j] < key || (keys[j] == key && rows[j] < row); };
    const std::uint32_t place = own ? place_of(count, before) : 0;
    __syncthreads();
    if (own) {
        keys[place] = key;
        rows[place] = row;
    }
    __syncthreads();
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
