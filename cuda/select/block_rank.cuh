// Radix selection by one block: finds, digit by digit, a key that bounds about the first `lowest` of many keys.
#pragma once

#include <cstdint>

#include "select/key.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

inline constexpr int digit_bits = 11;
inline constexpr int digit_bins = 1 << digit_bits;

struct RankShared {
    alignas(16) unsigned histogram[digit_bins];
    SelectKey smallest[32], largest[32];  // one for each warp
    unsigned warp_total[32];
    unsigned bin, below, inside;
    unsigned kept;  // for the caller; find_rank does not touch it
};

struct RankBound {
    SelectKey bound;  // inclusive
    unsigned below;   // keys under the last digit's bin
    unsigned count;   // keys at or below the bound
    bool exact;       // all digits were resolved: the keys beyond the first `below` equal the bound
};

namespace detail
{

// Finds the bin in which the running sum of the histogram reaches `rank` (from 1). All threads call. False where the
// sum stays below `rank`.
template <int threads>
__device__ bool find_bin(RankShared& shared, unsigned rank)
{
    constexpr int bins = digit_bins / threads;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    unsigned sum = 0;
    if constexpr (bins % 4 == 0) {
        const uint4* mine = reinterpret_cast<const uint4*>(shared.histogram) + thread * (bins / 4);
#pragma unroll
        for (int i = 0; i < bins / 4; i++) sum += mine[i].x + mine[i].y + mine[i].z + mine[i].w;
    } else {
#pragma unroll
        for (int i = 0; i < bins; i++) sum += shared.histogram[thread * bins + i];
    }
    const unsigned running = warp_prefix_sum(sum);
    if (lane == 31) shared.warp_total[warp] = running;
    __syncthreads();
    const unsigned of_warp = lane < threads / 32 ? shared.warp_total[lane] : 0;
    const unsigned upto_warp = warp_prefix_sum(of_warp), total = __shfl_sync(0xffffffffu, upto_warp, 31);
    const unsigned below_warp = __shfl_sync(0xffffffffu, upto_warp - of_warp, warp);
    unsigned below = below_warp + running - sum;
    if (below < rank && rank <= below + sum) {
        int bin = thread * bins;
        while (below + shared.histogram[bin] < rank) below += shared.histogram[bin++];
        shared.bin = static_cast<unsigned>(bin);
        shared.below = below;
        shared.inside = shared.histogram[bin];
    }
    __syncthreads();
    return total >= rank;
}

}  // namespace detail

namespace detail
{

// The smallest and the largest key of the block, in all threads.
template <int threads, class Visit>
__device__ void find_range(RankShared& shared, Visit visit, SelectKey& smallest, SelectKey& largest)
{
    smallest = padding_key, largest = 0;
    visit([&](SelectKey key) {
        smallest = min(smallest, key);
        largest = max(largest, key);
    });
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    smallest = warp_least(smallest), largest = warp_largest(largest);
    if (lane == 0) shared.smallest[warp] = smallest, shared.largest[warp] = largest;
    __syncthreads();
    smallest = warp_least(lane < threads / 32 ? shared.smallest[lane] : padding_key);
    largest = warp_largest(lane < threads / 32 ? shared.largest[lane] : 0);
}

}  // namespace detail

// Finds a bound with `lowest` to `highest` keys at or below it, or the exact key of rank `lowest` where no digit gives
// such a bound; padding_key where there are fewer than `lowest` keys. visit(f) calls f(key) for each key of the calling
// thread, the same keys every time; padding_key must not be among them. The first digit starts below the bits that all
// keys share.
template <int threads, class Visit>
__device__ RankBound find_rank(RankShared& shared, unsigned lowest, unsigned highest, Visit visit)
{
    SelectKey smallest, largest;
    detail::find_range<threads>(shared, visit, smallest, largest);
    if (smallest > largest) return {padding_key, 0, 0, false};
    int shift = max(1, 64 - __clzll(static_cast<long long>(smallest ^ largest)));
    SelectKey mask = shift == 64 ? 0 : ~SelectKey{0} << shift;
    SelectKey prefix = largest & mask;
    unsigned below = 0;
    while (true) {
        const int bits = min(digit_bits, shift);
        shift -= bits;
        for (int i = static_cast<int>(threadIdx.x); i < digit_bins; i += threads) shared.histogram[i] = 0;
        __syncthreads();
        visit([&](SelectKey key) {
            if ((key & mask) == prefix)
                atomicAdd(&shared.histogram[static_cast<unsigned>(key >> shift) & ((1u << bits) - 1u)], 1u);
        });
        __syncthreads();
        if (!detail::find_bin<threads>(shared, lowest - below)) return {padding_key, 0, 0, false};
        mask = ~SelectKey{0} << shift;
        prefix |= static_cast<SelectKey>(shared.bin) << shift;
        below += shared.below;
        const unsigned count = below + shared.inside;
        const bool exact = shift == 0;
        if (count <= highest || exact) return {prefix | ~mask, below, count, exact};
    }
}

// Moves those of keys[0, count) at or below the bound to the front, unordered, at most `limit` of them, and returns
// their number in all threads. counter: in shared memory.
template <int threads>
__device__ unsigned keep_ranked(SelectKey* keys, unsigned count, const RankBound& ranked, unsigned limit,
                                unsigned* counter)
{
    // The limit is exceeded only where one key occurs several times (an id given twice). Equal keys are
    // interchangeable.
    const bool repeated = ranked.count > limit;
    if (threadIdx.x == 0) *counter = 0;
    for (unsigned first = 0; first < count; first += threads) {
        const unsigned i = first + threadIdx.x;
        const SelectKey key = i < count ? keys[i] : padding_key;
        // All threads have read keys that are overwritten from here on.
        __syncthreads();
        const bool stays = key < ranked.bound || (key == ranked.bound && key != padding_key && !repeated);
        const unsigned mask = __ballot_sync(0xffffffffu, stays), lane = threadIdx.x % 32;
        unsigned slot = 0;
        if (lane == 0 && mask != 0) slot = atomicAdd(counter, static_cast<unsigned>(__popc(mask)));
        slot = __shfl_sync(0xffffffffu, slot, 0) + __popc(mask & ((1u << lane) - 1u));
        if (stays) keys[slot] = key;
    }
    __syncthreads();
    if (!repeated) return ranked.count;
    for (unsigned i = ranked.below + threadIdx.x; i < limit; i += threads) keys[i] = ranked.bound;
    __syncthreads();
    return limit;
}

}  // namespace pgwarp::cuda
