// Sorts of keys in shared memory by a whole block: bitonic ones of a power of two, and for few keys, of which no two
// are the same, one that counts for each how many come before it: two barriers in place of dozens. Of many keys the
// first are found by a bound on the last of them.
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

// The other order of the same exchanges: runs ascend and descend in turn. exchange(low, high, ascending) orders a pair.
// For keys written before a barrier; ends with one. size: a power of two.
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

// Puts the smallest of `count` keys, no two the same, in front of the others: `wanted` or some more, in no order.
// Returns how many, or 0 for more than counting serves. wanted: at most a quarter of the keys and of the threads.
// spare: [count], and a key for each pair of threads.
__device__ inline std::uint32_t bring_forward(std::uint64_t* keys, std::uint64_t* spare, std::uint32_t count,
                                              std::uint32_t wanted)
{
    __shared__ std::uint64_t limit;
    __shared__ std::uint32_t sizes[2];  // of those within the limit and of the others
    if (threadIdx.x < 2) sizes[threadIdx.x] = 0;
    __syncthreads();
    // The smallest of what two threads look at: the wanted-th of these is none too small.
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
