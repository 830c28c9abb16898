// Sorts of keys in shared memory by a whole block. Bitonic sorts take powers of two. For few distinct keys a counting
// sort counts, for each key, the keys before it: two barriers in place of dozens. bring_forward() finds the first of
// many keys by a bound.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

__device__ inline std::uint32_t power_of_two_from(std::uint32_t n)
{
    return n <= 1 ? 1 : 1U << (32 - __clz(static_cast<int>(n - 1)));
}

// compare_exchange(i, j) puts the smaller of two elements into i. Synchronizes before and after.
template <class CompareExchange>
__device__ void bitonic_sort(std::uint32_t count, const CompareExchange& compare_exchange)
{
    __syncthreads();
    for (std::uint32_t size = 2; size <= count; size *= 2) {
        for (std::uint32_t half = size / 2; half > 0; half /= 2) {
            for (std::uint32_t i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const std::uint32_t low = (i & ~(half - 1)) << 1 | (i & (half - 1));
                // The first step of a size compares from the outside inwards, so that all runs are ascending.
                const std::uint32_t high = half == size / 2 ? low ^ (size - 1) : low + half;
                compare_exchange(low, high);
            }
            __syncthreads();
        }
    }
}

// The bitonic sort with runs that ascend and descend in turn; exchange(low, high, ascending) orders a pair. The caller
// has a barrier after writing the keys. Ends with a barrier. size: a power of two.
template <int Threads, class Exchange>
__device__ void alternating_sort(int size, const Exchange& exchange)
{
    for (int span = 2; span <= size; span *= 2) {
        for (int step = span / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < size / 2; i += Threads) {
                const int low = 2 * step * (i / step) + i % step;
                exchange(low, low + step, (low & span) == 0);
            }
            __syncthreads();
        }
    }
}

// The most keys for which counting is faster. It also needs a thread for each key.
inline constexpr std::uint32_t counted_keys = 512;

__device__ inline bool counting_serves(std::uint32_t count)
{
    return count <= min(counted_keys, blockDim.x);
}

// The number of the `count` keys for which before(j) holds: the place of the calling thread's key.
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

// Moves the smallest of `count` distinct keys to the front, unordered: `wanted` of them or some more. Returns their
// number, or 0 where they are too many for counting. wanted: at most a quarter of the keys and of the threads. spare:
// [count], and at least one key for each pair of threads.
__device__ inline std::uint32_t bring_forward(std::uint64_t* keys, std::uint64_t* spare, std::uint32_t count,
                                              std::uint32_t wanted)
{
    __shared__ std::uint64_t limit;
    __shared__ std::uint32_t sizes[2];  // keys within the limit, and other keys
    if (threadIdx.x < 2) sizes[threadIdx.x] = 0;
    __syncthreads();
    // Each pair of threads finds the smallest of its keys. The wanted-th of these is a limit with at least `wanted`
    // keys.
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) least = min(least, keys[i]);
    least = min(least, static_cast<std::uint64_t>(__shfl_xor_sync(~0U, least, 1)));
    if (threadIdx.x % 2 == 0) spare[threadIdx.x / 2] = least;
    __syncthreads();
    const std::uint32_t pairs = blockDim.x / 2;
    if (threadIdx.x < pairs) {
        const std::uint64_t own = spare[threadIdx.x];
        if (place_of(pairs, [&](std::uint32_t j) { return spare[j] < own; }) == wanted - 1) limit = own;
    }
    __syncthreads();
    const unsigned lanes_before = (1U << threadIdx.x % 32) - 1;
    for (std::uint32_t first = threadIdx.x & ~31U; first < count; first += blockDim.x) {
        const std::uint32_t i = first + threadIdx.x % 32;
        const bool own = i < count;
        const std::uint64_t key = own ? keys[i] : 0;
        const unsigned within = __ballot_sync(~0U, own && key <= limit);
        const unsigned beyond = __ballot_sync(~0U, own && key > limit);
        std::uint32_t begin = 0;
        if (threadIdx.x % 32 < 2)
            begin = atomicAdd(&sizes[threadIdx.x % 32], __popc(threadIdx.x % 32 == 0 ? within : beyond));
        const std::uint32_t front = __shfl_sync(~0U, begin, 0) + __popc(within & lanes_before);
        const std::uint32_t back = __shfl_sync(~0U, begin, 1) + __popc(beyond & lanes_before);
        if (own) spare[key <= limit ? front : count - 1 - back] = key;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) keys[i] = spare[i];
    __syncthreads();
    return counting_serves(sizes[0]) ? sizes[0] : 0;
}

// Sorts by (key, row) by counting. Where there are threads enough, neighbouring lanes share a key.
__device__ inline void count_rows(std::uint64_t* keys, std::uint32_t* rows, std::uint32_t count)
{
    __syncthreads();
    std::uint32_t lanes = 1;
    while (lanes < 8 && 2 * lanes * count <= blockDim.x) lanes *= 2;
    const std::uint32_t number = threadIdx.x / lanes;
    const bool own = number < count;
    const std::uint64_t key = own ? keys[number] : 0;
    const std::uint32_t row = own ? rows[number] : 0;
    std::uint32_t place = 0;
    std::uint32_t equal = 0;
#pragma unroll 8
    for (std::uint32_t j = threadIdx.x & (lanes - 1); own && j < count; j += lanes) {
        const std::uint64_t other = keys[j];
        place += other < key ? 1 : 0;
        equal += other == key ? 1 : 0;
    }
    for (std::uint32_t step = lanes / 2; step > 0; step /= 2) {
        place += __shfl_xor_sync(~0U, place, static_cast<int>(step));
        equal += __shfl_xor_sync(~0U, equal, static_cast<int>(step));
    }
    for (std::uint32_t j = 0; equal > 1 && j < count; ++j) place += keys[j] == key && rows[j] < row ? 1 : 0;
    __syncthreads();
    if (own && (threadIdx.x & (lanes - 1)) == 0) {
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

// Sorts by (key, row).
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
