// The descent of the tree by a whole block (Wieschollek et al., section 3.2): the best centroids of the first level in
// each part, and their leaves in order of their scores.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "pqtree/block.cuh"
#include "pqtree/view.h"
#include "select/order_bits.h"

namespace pgwarp::cuda::pqtree
{

// Leaves, or combinations of leaves, in ascending order of their scores.
struct RankedList {
    const float* scores;
    const std::uint32_t* numbers;
    std::uint32_t count;

    // The largest power of two up to the count: the first step of a search.
    __device__ std::uint32_t largest_step() const { return 1U << (31 - __clz(static_cast<int>(count))); }
};

namespace detail
{

// A score that can be ranked: sums out of float's range, and NaN, become its largest or smallest number.
__device__ inline float within_range(float score)
{
    return fminf(fmaxf(score, -FLT_MAX), FLT_MAX);
}

// chosen[part][width] = the centroids with the smallest scores; ties go to the lower number. Four lanes rank a
// centroid.
template <int Threads>
__device__ void choose_centroids(const TreeView& tree, const float* part_scores, std::uint32_t width,
                                 std::uint32_t* chosen)
{
    constexpr std::uint32_t lanes = 4;
    const std::uint32_t count = (tree.parts * tree.k1 + 7) / 8 * 8;  // whole warps
    for (std::uint32_t unit = threadIdx.x / lanes; unit < count; unit += Threads / lanes) {
        const std::uint32_t part = min(unit / tree.k1, tree.parts - 1);
        const std::uint32_t own = unit % tree.k1;
        const float* scores = part_scores + part * tree.padded_level1;
        const float score = within_range(scores[own]);
        std::uint32_t rank = 0;
#pragma unroll 4
        for (std::uint32_t other = threadIdx.x % lanes; other < tree.k1; other += lanes) {
            const float theirs = within_range(scores[other]);
            rank += theirs < score || (theirs == score && other < own) ? 1 : 0;
        }
        rank += __shfl_xor_sync(~0U, rank, 1);
        rank += __shfl_xor_sync(~0U, rank, 2);
        if (unit < tree.parts * tree.k1 && rank < width) chosen[part * width + rank] = own;
    }
}

// The leaf with number i among those of the chosen centroids of a part.
__device__ inline std::uint32_t leaf_of(const TreeView& tree, const std::uint32_t* chosen, std::uint32_t i)
{
    return chosen[i / tree.k2] * tree.k2 + i % tree.k2;
}

// out[part][ranks] = the score of each leaf of the chosen centroids, then infinity. Four lanes score a leaf; the rows
// of several leaves are read together.
template <int Threads>
__device__ void score_leaves(const TreeView& tree, const float* query, const std::uint32_t* chosen, std::uint32_t width,
                             std::uint32_t ranks, float* out)
{
    constexpr std::uint32_t lanes = 4;
    const std::uint32_t lane = threadIdx.x % lanes;
    const std::uint32_t count = width * tree.k2;
    for (std::uint32_t unit = threadIdx.x / lanes; unit < tree.parts * ranks; unit += Threads / lanes) {
        const std::uint32_t part = unit / ranks;
        const std::uint32_t i = unit % ranks;
        const std::uint32_t leaf = leaf_of(tree, chosen + part * width, min(i, count - 1));
        const std::uint32_t quads = (tree.padded[part + 1] - tree.padded[part]) / 4;
        const auto* own = reinterpret_cast<const float4*>(query + tree.padded[part]);
        const auto* row =
            reinterpret_cast<const float4*>(tree.level2 + std::size_t{leaf} * tree.padded_query + tree.padded[part]);
        float sum = 0;
#pragma unroll 4
        for (std::uint32_t quad = lane; quad < quads; quad += lanes) {
            const float4 a = own[quad];
            const float4 b = row[quad];
            if (tree.squared) {
                sum += (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z) +
                       (a.w - b.w) * (a.w - b.w);
            } else {
                sum -= a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
            }
        }
        sum += __shfl_xor_sync(~0U, sum, 1);
        sum += __shfl_xor_sync(~0U, sum, 2);
        // The sum turns -0 into 0, whose order is that of numbers.
        if (lane == 0) out[unit] = i < count ? within_range(sum) + 0.0F : INFINITY;
    }
}

// Returns the number of scores [ranks] before the own one, of number i; ties go to the lower number. ranks: a multiple
// of 4. `lanes` neighbouring lanes share the work, and all of them get the number. No score is -0 or NaN.
__device__ inline std::uint32_t rank_of(const float* scores, std::uint32_t ranks, std::uint32_t i, std::uint32_t lanes)
{
    const float own = scores[i];
    const float next = float_of_order(order_of(own) + 1);
    const std::uint32_t lane = threadIdx.x & (lanes - 1);
    const std::uint32_t own_quad = i / 4 * 4;
    std::uint32_t rank = 0;
#pragma unroll 4
    for (std::uint32_t quad = 4 * lane; quad < ranks; quad += 4 * lanes) {
        const float4 other = *reinterpret_cast<const float4*>(scores + quad);
        const float limit = quad < own_quad ? next : own;
        rank += (other.x < limit) + (other.y < limit) + (other.z < limit) + (other.w < limit);
    }
    for (std::uint32_t step = lanes / 2; step > 0; step /= 2)
        rank += __shfl_xor_sync(~0U, rank, static_cast<int>(step));
    for (std::uint32_t j = own_quad; j < i; ++j) rank += scores[j] == own ? 1 : 0;
    return rank;
}

// How many lanes share a leaf, so that the threads compare all leaves with `ranks` others in the fewest steps.
template <int Threads>
__device__ std::uint32_t lanes_of_leaf(std::uint32_t leaves, std::uint32_t ranks)
{
    const auto steps = [&](std::uint32_t lanes) {
        return (leaves * lanes + Threads - 1) / Threads * ((ranks + 4 * lanes - 1) / (4 * lanes));
    };
    const std::uint32_t few = steps(2) < steps(1) ? 2 : 1;
    return steps(4) < steps(few) ? 4 : few;
}

// Ends with a barrier.
template <int Threads>
__device__ void unpack_keys(const SelectKey* keys, std::uint32_t count, float* scores, std::uint32_t* numbers)
{
    for (std::uint32_t i = threadIdx.x; i < count; i += Threads) {
        scores[i] = key_score(keys[i]);
        numbers[i] = key_id(keys[i]);
    }
    __syncthreads();
}

}  // namespace detail

// Writes the leaves of the `width` best centroids of each part, sorted by counting: space.scores and space.leaves
// [parts][ranks], of which the first width * k2 <= ranks are valid. ranks: a multiple of 8. Begins and ends with a
// barrier.
template <int Threads>
__device__ void rank_leaves(const TreeView& tree, const BlockSpace& space, std::uint32_t width, std::uint32_t ranks)
{
    __syncthreads();
    detail::choose_centroids<Threads>(tree, space.part_scores, width, space.scratch);
    __syncthreads();
    auto* scores = reinterpret_cast<float*>(space.keys);
    detail::score_leaves<Threads>(tree, space.query, space.scratch, width, ranks, scores);
    __syncthreads();
    const std::uint32_t lanes = detail::lanes_of_leaf<Threads>(tree.parts * ranks, ranks);
    const std::uint32_t units = (tree.parts * ranks + 31) / 32 * 32;
    for (std::uint32_t unit = threadIdx.x / lanes; unit < units; unit += Threads / lanes) {
        const std::uint32_t leaf = min(unit, tree.parts * ranks - 1);
        const std::uint32_t part = leaf / ranks;
        const std::uint32_t i = leaf % ranks;
        const std::uint32_t place = part * ranks + detail::rank_of(scores + part * ranks, ranks, i, lanes);
        if (unit >= tree.parts * ranks || i >= width * tree.k2 || threadIdx.x % lanes != 0) continue;
        space.scores[place] = scores[leaf];
        space.leaves[place] = detail::leaf_of(tree, space.scratch + part * width, i);
    }
    __syncthreads();
}

}  // namespace pgwarp::cuda::pqtree
