// The shared memory of a block that searches for one query, and sums over the block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pqtree/layout.h"
#include "select/block_rank.cuh"
#include "select/key.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::pqtree
{

// Threads of a block: few where many blocks share a multiprocessor, many where a query has one to itself.
inline constexpr int batch_threads = 256;
inline constexpr int single_threads = 1024;

// Numbers that all threads read.
struct BlockState {
    std::uint32_t warp_sums[32];
    std::uint32_t listed;      // bins
    std::uint32_t taken;       // rows of the bins before the cut
    std::uint32_t cut;         // bucket in which the wanted number of rows is reached
    std::uint32_t before_cut;  // rows of the buckets before it
    std::uint32_t at_cut;      // rows of that bucket
    std::uint32_t kept;        // keys
    float limit;               // scores above it are not kept
};

struct BlockSpace {
    std::uint32_t* terms;
    SelectKey* keys;
    uint2* bins;
    std::uint32_t* scratch;
    float* query;
    float* part_scores;
    float* scores;
    std::uint32_t* leaves;
    std::uint32_t* offsets;
    float* line_scores;

    __device__ BlockSpace(std::byte* memory, const BlockLayout& at)
        : terms(reinterpret_cast<std::uint32_t*>(memory + at.terms)),
          keys(reinterpret_cast<SelectKey*>(memory + at.keys)),
          bins(reinterpret_cast<uint2*>(memory + at.bins)),
          scratch(reinterpret_cast<std::uint32_t*>(memory + at.scratch)),
          query(reinterpret_cast<float*>(memory + at.query)),
          part_scores(reinterpret_cast<float*>(memory + at.part_scores)),
          scores(reinterpret_cast<float*>(memory + at.scores)),
          leaves(reinterpret_cast<std::uint32_t*>(memory + at.leaves)),
          offsets(reinterpret_cast<std::uint32_t*>(memory + at.offsets)),
          line_scores(reinterpret_cast<float*>(memory + at.keys))
    {
    }
};

// Moves the `lowest` smallest of keys [count], or some more up to `highest`, to the front, in any order. Returns their
// number; `bound` becomes the largest score that they may have. `count` where there are no more. All threads call;
// begins and ends with a barrier.
template <int Threads>
__device__ std::uint32_t keep_smallest(SelectKey* keys, std::uint32_t count, std::uint32_t lowest,
                                       std::uint32_t highest, RankShared& shared, float& bound)
{
    __syncthreads();
    if (count <= highest) return count;
    const RankBound ranked = find_rank<Threads>(shared, lowest, highest, [&](const auto& use) {
        for (std::uint32_t i = threadIdx.x; i < count; i += Threads) use(keys[i]);
    });
    bound = key_bound(ranked.bound);
    return keep_ranked<Threads>(keys, count, ranked, highest, &shared.kept);
}

static_assert(sizeof(RankShared) <= fewest_scratch * sizeof(std::uint32_t));

// The sum of the values of the threads before the calling one; total: of all. All threads call.
template <int Threads>
__device__ std::uint32_t sum_before(std::uint32_t value, BlockState& state, std::uint32_t& total)
{
    const std::uint32_t warp = threadIdx.x / 32;
    const std::uint32_t upto = warp_prefix_sum(value);
    if (threadIdx.x % 32 == 31) state.warp_sums[warp] = upto;
    __syncthreads();
    const std::uint32_t of_warp = threadIdx.x % 32 < Threads / 32 ? state.warp_sums[threadIdx.x % 32] : 0;
    const std::uint32_t upto_warp = warp_prefix_sum(of_warp);
    total = __shfl_sync(~0U, upto_warp, 31);
    const std::uint32_t before = upto - value + __shfl_sync(~0U, upto_warp - of_warp, static_cast<int>(warp));
    __syncthreads();
    return before;
}

}  // namespace pgwarp::cuda::pqtree
