// Selection of the smallest scores of a row by one block, and a sort of the selected scores in shared memory.
//
// A bound comes first: the wanted-th smallest of the minima of disjoint parts of the row is at least the wanted-th
// smallest score. Scores up to the bound are kept and sorted. Where these are too many (ties, scores in an unfavourable
// order) the exact limit is found digit by digit.
#pragma once

#include <cstdint>

#include "select/order_bits.h"

#include "select/shared_sort.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

inline constexpr int select_capacity = 2048;  // scores kept at once
inline constexpr int select_most = 1024;      // the largest `wanted`

struct SelectShared {
    std::uint64_t kept[select_capacity];  // key << 32 | index
    std::uint32_t histogram[256];
    std::uint32_t prefix;
    std::uint32_t below;  // keys known to be smaller than those with the prefix
    std::uint32_t within;
    int count;
    int ties;
};

// Finds the limit T of the wanted-th smallest key, by `digits` digits of 8 bits from the top; the lower bits of T are
// ones. shared.below becomes the number of keys below the digits of T. each(f) calls f(key) for all keys of the calling
// thread; no_key counts as a key. Returns no_key where there are fewer than `wanted` keys.
template <int Threads, class Each>
__device__ std::uint32_t find_limit(const Each& each, std::uint32_t wanted, int digits, SelectShared& shared)
{
    if (threadIdx.x == 0) {
        shared.prefix = 0;
        shared.below = 0;
        shared.within = 1;
    }
    for (int digit = 0; digit < digits; ++digit) {
        const int shift = 24 - 8 * digit;
        for (int i = threadIdx.x; i < 256; i += Threads) shared.histogram[i] = 0;
        __syncthreads();
        const std::uint64_t prefix = shared.prefix;
        each([&](std::uint32_t key) {
            if ((static_cast<std::uint64_t>(key) >> (shift + 8)) == prefix) {
                atomicAdd(&shared.histogram[(key >> shift) & 255U], 1U);
            }
        });
        __syncthreads();
        if (threadIdx.x < 32) {
            const int lane = threadIdx.x;
            std::uint32_t own = 0;
            for (int i = 0; i < 8; ++i) own += shared.histogram[lane * 8 + i];
            const std::uint32_t through = warp_prefix_sum(own);
            const std::uint32_t sought = wanted - shared.below;
            const bool here = through >= sought && through - own < sought;
            if (__ballot_sync(0xffffffffU, here) == 0 && lane == 0) shared.within = 0;
            if (here) {
                std::uint32_t before = through - own;
                int bin = lane * 8;
                while (before + shared.histogram[bin] < sought) before += shared.histogram[bin++];
                shared.prefix = static_cast<std::uint32_t>(prefix) << 8 | static_cast<std::uint32_t>(bin);
                shared.below += before;
            }
        }
        __syncthreads();
        if (shared.within == 0) return no_key;
    }
    const int rest = 32 - 8 * digits;
    const std::uint32_t low = rest == 0 ? 0 : (1U << rest) - 1;
    return rest == 0 ? shared.prefix : shared.prefix << rest | low;
}

// Sorts kept[0, count) in ascending order. Overwrites up to the next power of two.
template <int Threads>
__device__ void sort_kept(SelectShared& shared, int count)
{
    int size = 2;
    while (size < count) size *= 2;
    for (int i = count + threadIdx.x; i < size; i += Threads) shared.kept[i] = ~std::uint64_t{0};
    __syncthreads();
    alternating_sort<Threads>(size, [&](int low, int high, bool ascending) {
        const std::uint64_t a = shared.kept[low];
        const std::uint64_t b = shared.kept[high];
        if ((a > b) != ascending) return;
        shared.kept[low] = b;
        shared.kept[high] = a;
    });
}

// Keeps those of a thread's keys that are at most the limit. first: the index of keys[0]; the others follow in steps of
// Threads.
template <int Threads, int Held>
__device__ void keep_keys(const std::uint32_t (&keys)[Held], std::uint32_t first, std::uint32_t limit,
                          SelectShared& shared)
{
#pragma unroll
    for (int h = 0; h < Held; ++h) {
        if (keys[h] > limit || keys[h] == no_key) continue;
        const int at = atomicAdd(&shared.count, 1);
        if (at < select_capacity) shared.kept[at] = static_cast<std::uint64_t>(keys[h]) << 32 | (first + h * Threads);
    }
}

// Leaves the min(wanted, candidates) smallest of key_at(0 .. count - 1), sorted, in shared.kept and returns their
// number; no_key is no candidate. wanted <= select_most. Called by all threads of the block. Rows of up to Threads *
// Held keys are read once and stay in registers.
template <int Threads, int Held, class KeyAt>
__device__ int select_smallest(const KeyAt& key_at, std::uint32_t count, std::uint32_t wanted, SelectShared& shared)
{
    constexpr int groups = 8;
    static_assert(Held % groups == 0);
    constexpr std::uint32_t step = Threads * Held;
    std::uint32_t keys[Held];
    const auto read = [&](std::uint32_t base) {
#pragma unroll
        for (int h = 0; h < Held; ++h) {
            const std::uint32_t i = base + h * Threads + threadIdx.x;
            keys[h] = i < count ? key_at(i) : no_key;
        }
    };
    std::uint32_t minima[groups];
    for (auto& minimum : minima) minimum = no_key;
    for (std::uint32_t base = 0; base < count; base += step) {
        read(base);
#pragma unroll
        for (int h = 0; h < Held; ++h) minima[h % groups] = min(minima[h % groups], keys[h]);
    }
    std::uint32_t limit = no_key;
    if (wanted <= Threads / 2) {  // one minimum of each thread is enough
#pragma unroll
        for (int g = 1; g < groups; ++g) minima[0] = min(minima[0], minima[g]);
        limit = find_limit<Threads>([&](const auto& f) { f(minima[0]); }, wanted, 3, shared);
    } else {
        limit = find_limit<Threads>(
            [&](const auto& f) {
#pragma unroll
                for (const std::uint32_t minimum : minima) f(minimum);
            },
            wanted, 3, shared);
    }
    const auto keep = [&](std::uint32_t most) {
        __syncthreads();
        if (threadIdx.x == 0) shared.count = 0;
        __syncthreads();
        for (std::uint32_t base = 0; base < count; base += step) {
            if (count > step) read(base);
            keep_keys<Threads>(keys, base + threadIdx.x, most, shared);
        }
        __syncthreads();
        return shared.count;
    };
    int kept = keep(limit);
    if (kept > select_capacity) {
        limit = find_limit<Threads>(
            [&](const auto& f) {
                for (std::uint32_t i = threadIdx.x; i < count; i += Threads) f(key_at(i));
            },
            wanted, 4, shared);
        // These are fewer than wanted; ties at the limit fill up.
        keep(limit - 1);
        for (std::uint32_t i = threadIdx.x; i < count; i += Threads) {
            if (key_at(i) != limit) continue;
            const int at = atomicAdd(&shared.count, 1);
            if (at < static_cast<int>(wanted)) shared.kept[at] = static_cast<std::uint64_t>(limit) << 32 | i;
        }
        __syncthreads();
        kept = min(shared.count, static_cast<int>(wanted));
    }
    sort_kept<Threads>(shared, kept);
    return min(kept, static_cast<int>(wanted));
}

}  // namespace pgwarp::cuda::ivfadc
