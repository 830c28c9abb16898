// Parallel merging of two ascending runs of keys: the places in both runs where the first `rank` keys of the result
// end.
#pragma once

#include <cstdint>

#include "select/key.cuh"

namespace pgwarp::cuda
{

// Keys in shared memory with a gap after every eight, so that threads that each access eight in a row have no bank
// conflicts.
struct Spread {
    SelectKey* keys;
    unsigned first = 0;

    static constexpr unsigned room(unsigned count) { return count + count / 8; }
    __device__ SelectKey& operator[](unsigned i) const { return keys[room(first + i)]; }
    template <int items>
    __device__ void store(unsigned position, const SelectKey (&own)[items]) const
    {
#pragma unroll
        for (int i = 0; i < items; i++) (*this)[position + i] = own[i];
    }
};

// The number of keys from `a` among the first `rank` keys of the merged runs.
template <class Keys>
__device__ unsigned merge_path(const Keys& a, unsigned a_count, const Keys& b, unsigned b_count, unsigned rank)
{
    unsigned low = rank > b_count ? rank - b_count : 0, high = min(rank, a_count);
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (a[middle] <= b[rank - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// merge_path() by a whole warp, 32 places at a time: for runs in device memory, where every step has its latency.
__device__ inline unsigned merge_path_by_warp(const SelectKey* a, unsigned a_count, const SelectKey* b,
                                              unsigned b_count, unsigned rank)
{
    unsigned low = rank > b_count ? rank - b_count : 0, high = min(rank, a_count);
    while (low < high) {
        const unsigned step = (high - low + 31) / 32, middle = low + (threadIdx.x % 32) * step;
        const bool from_a = middle < high && a[middle] <= b[rank - 1 - middle];  // true up to the cut
        const unsigned lanes = __popc(__ballot_sync(0xffffffffu, from_a));
        if (lanes == 0) return low;
        high = min(high, low + lanes * step);
        low += (lanes - 1) * step + 1;
    }
    return low;
}

// The thread's keys of the merged runs, from `rank` on; padding beyond their end.
template <int items>
__device__ void merge_own(const Spread& a, unsigned a_count, const Spread& b, unsigned b_count, unsigned rank,
                          SelectKey (&own)[items])
{
    unsigned i = merge_path(a, a_count, b, b_count, rank), j = rank - i;
    SelectKey x = i < a_count ? a[i] : padding_key, y = j < b_count ? b[j] : padding_key;
#pragma unroll
    for (int n = 0; n < items; n++) {
        const bool from_a = x <= y;
        own[n] = from_a ? x : y;
        if (from_a)
            x = ++i < a_count ? a[i] : padding_key;
        else
            y = ++j < b_count ? b[j] : padding_key;
    }
}

// Sorts the thread's registers in ascending order.
template <int items>
__device__ void sort_own(SelectKey (&own)[items])
{
#pragma unroll
    for (int run = 2; run <= items; run *= 2)
#pragma unroll
        for (int distance = run / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int i = 0; i < items; i++) {
                if ((i & distance) != 0) continue;
                const SelectKey low = min(own[i], own[i | distance]), high = max(own[i], own[i | distance]);
                const bool ascending = (i & run) == 0;
                own[i] = ascending ? low : high;
                own[i | distance] = ascending ? high : low;
            }
}

}  // namespace pgwarp::cuda
