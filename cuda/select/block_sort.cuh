// Bitonic sort of keys in shared memory by one block, and the last step of a selection: cut, sort and write.
#pragma once

#include <cstdint>

#include "select/block_rank.cuh"
#include "select/key.cuh"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda
{

// Sorts threads * items keys in ascending order; thread t holds the keys from items * t on. Exchanges use registers
// within a thread, shuffles within a warp, and `exchange` (shared memory for all keys) across warps. No barrier at the
// start or the end.
template <int threads, int items>
__device__ void sort_registers(SelectKey (&keys)[items], SelectKey* exchange)
{
    const int first = static_cast<int>(threadIdx.x) * items;
    const auto order = [](SelectKey& a, SelectKey& b, bool ascending) {
        if ((b < a) != ascending) return;
        const SelectKey other = a;
        a = b;
        b = other;
    };
    const auto sort_own = [&](int distance, int run) {
#pragma unroll
        for (int i = 0; i < items; i++)
            if ((i & distance) == 0) order(keys[i], keys[i | distance], ((first + i) & run) == 0);
    };
#pragma unroll
    for (int run = 2; run <= items; run *= 2)
#pragma unroll
        for (int distance = run / 2; distance > 0; distance /= 2) sort_own(distance, run);
#pragma unroll 1
    for (int run = 2 * items; run <= threads * items; run *= 2) {
        const bool ascending = (first & run) == 0;
        int distance = run / 2;
#pragma unroll 1
        for (; distance >= 32 * items; distance /= 2) {
            const int partner = static_cast<int>(threadIdx.x) ^ (distance / items);
            const bool low = ((first & distance) == 0) == ascending;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < items; i++) exchange[i * threads + static_cast<int>(threadIdx.x)] = keys[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < items; i++) {
                const SelectKey other = exchange[i * threads + partner];
                if ((other < keys[i]) == low) keys[i] = other;
            }
        }
#pragma unroll 1
        for (; distance >= items; distance /= 2) {
            const bool low = ((first & distance) == 0) == ascending;
#pragma unroll
            for (int i = 0; i < items; i++) {
                const SelectKey other = __shfl_xor_sync(0xffffffffu, keys[i], distance / items);
                if ((other < keys[i]) == low) keys[i] = other;
            }
        }
#pragma unroll
        for (int own = items / 2; own > 0; own /= 2) sort_own(own, run);
    }
}

// Sorts keys[0, count) in shared memory, count <= threads * items, and fills up to threads * items with padding. The
// caller has a barrier after writing the keys. Ends with a barrier.
template <int threads, int items>
__device__ void sort_shared(SelectKey* keys, unsigned count)
{
    SelectKey own[items];
#pragma unroll
    for (int i = 0; i < items; i++) {
        const unsigned place = i * threads + threadIdx.x;  // any order will do
        own[i] = place < count ? keys[place] : padding_key;
    }
    sort_registers<threads, items>(own, keys);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < items; i++) keys[threadIdx.x * items + i] = own[i];
    __syncthreads();
}

// Writes the k smallest of keys[0, count), ascending and padded. keys: room for max(threads, power_of_two_from(k))
// keys, which must be at most 8 * threads.
template <int threads>
__device__ void finish_row(SelectKey* keys, unsigned count, unsigned k, RankShared& shared, float* values,
                           std::uint32_t* ids)
{
    const unsigned room = max(static_cast<unsigned>(threads), power_of_two_from(k));
    if (count > room) {
        const RankBound ranked = find_rank<threads>(shared, k, room, [&](auto visit) {
            for (unsigned i = threadIdx.x; i < count; i += threads) visit(keys[i]);
        });
        count = keep_ranked<threads>(keys, count, ranked, room, &shared.kept);
    }
    if (count <= threads)
        sort_shared<threads, 1>(keys, count);
    else if (count <= 2 * threads)
        sort_shared<threads, 2>(keys, count);
    else if (count <= 4 * threads)
        sort_shared<threads, 4>(keys, count);
    else
        sort_shared<threads, 8>(keys, count);
    for (unsigned i = threadIdx.x; i < k; i += threads) {
        const SelectKey key = i < count ? keys[i] : padding_key;
        values[i] = key_score(key);
        ids[i] = key_id(key);
    }
}

}  // namespace pgwarp::cuda
