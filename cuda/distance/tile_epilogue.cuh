// From the products of a tile to scores and proposals, shared by the matrix kernels. A thread holds, as the matrix
// instructions leave them, products of two queries (rows lane / 4 and lane / 4 + 8 of its warp's 16) with 32 of 128
// rows: products[4 j + 2 q + c] belongs to query q and column 8 j + 2 (lane % 4) + c.
#pragma once

#include <cstdint>

#include "distance/proposals.h"

namespace pgwarp::cuda
{

inline constexpr int thread_products = 64;

// Products become scores; returns the largest of each query.
__device__ inline float2 make_scores(float (&products)[thread_products], float2 factor, const float* penalties)
{
    const float2* pairs = reinterpret_cast<const float2*>(penalties) + threadIdx.x % 4;
    float2 largest{-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < thread_products / 4; ++j) {
        const float2 penalty = pairs[4 * j];
        products[4 * j] = fmaf(products[4 * j], factor.x, -penalty.x);
        products[4 * j + 1] = fmaf(products[4 * j + 1], factor.x, -penalty.y);
        products[4 * j + 2] = fmaf(products[4 * j + 2], factor.y, -penalty.x);
        products[4 * j + 3] = fmaf(products[4 * j + 3], factor.y, -penalty.y);
        largest.x = fmaxf(largest.x, fmaxf(products[4 * j], products[4 * j + 1]));
        largest.y = fmaxf(largest.y, fmaxf(products[4 * j + 2], products[4 * j + 3]));
    }
    return largest;
}

// Minus the largest score of each query among the rows that its word of the mask admits; +infinity where there are
// none. word: bit 2 j + c is the row of products[4 j + 2 q + c].
__device__ inline float2 least_admitted(const float (&products)[thread_products], float2 factor, const float* penalties,
                                        uint2 word)
{
    const float2* pairs = reinterpret_cast<const float2*>(penalties) + threadIdx.x % 4;
    float2 largest{-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < thread_products / 4; ++j) {
        const float2 penalty = pairs[4 * j];
        const std::uint32_t first = 1U << (2 * j);
        const std::uint32_t second = 2U << (2 * j);
        if ((word.x & first) != 0) largest.x = fmaxf(largest.x, fmaf(products[4 * j], factor.x, -penalty.x));
        if ((word.x & second) != 0) largest.x = fmaxf(largest.x, fmaf(products[4 * j + 1], factor.x, -penalty.y));
        if ((word.y & first) != 0) largest.y = fmaxf(largest.y, fmaf(products[4 * j + 2], factor.y, -penalty.x));
        if ((word.y & second) != 0) largest.y = fmaxf(largest.y, fmaf(products[4 * j + 3], factor.y, -penalty.y));
    }
    return {-largest.x, -largest.y};
}

// The number in byte `which` of a word, as a float: the byte becomes the low bits of 2^23.
template <int which>
__device__ inline float byte_as_float(std::uint32_t word)
{
    return __uint_as_float(__byte_perm(word, 0x4B000000, 0x7540 + which)) - 0x1p23F;
}

// Adds the bytes of one of the two queries of a thread to its scores; returns the largest. bytes: the query's, of the
// tile.
template <int query>
__device__ inline float add_bytes(float (&scores)[thread_products], float unit, const std::uint8_t* bytes)
{
    const uint4* from = reinterpret_cast<const uint4*>(bytes) + threadIdx.x % 4 * 2;
    float largest = -INFINITY;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const uint4 four = from[part];
        const std::uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int first = 4 * (8 * part + 2 * i) + 2 * query;
            scores[first] = fmaf(unit, byte_as_float<0>(words[i]), scores[first]);
            scores[first + 1] = fmaf(unit, byte_as_float<1>(words[i]), scores[first + 1]);
            scores[first + 4] = fmaf(unit, byte_as_float<2>(words[i]), scores[first + 4]);
            scores[first + 5] = fmaf(unit, byte_as_float<3>(words[i]), scores[first + 5]);
            largest = fmaxf(
                largest, fmaxf(fmaxf(scores[first], scores[first + 1]), fmaxf(scores[first + 4], scores[first + 5])));
        }
    }
    return largest;
}

// Adds the bytes of a tile to the scores of a thread, whose queries are in `slot` and the eighth behind it; returns the
// largest of each. tile: within the range.
__device__ inline float2 add_tile_bytes(float (&scores)[thread_products], const AddedBytes& added, std::uint32_t slot,
                                        std::uint32_t tile)
{
    const std::uint8_t* bytes = added.values + std::size_t{slot} * added.width + std::size_t{tile} * tile_rows;
    const float first = add_bytes<0>(scores, added.units[slot], bytes);
    return {first, add_bytes<1>(scores, added.units[slot + 8], bytes + std::size_t{8} * added.width)};
}

// The four scores of group j. j is known at run time only, but equal in all lanes, so the switch is a jump and four
// moves.
__device__ inline float4 scores_at(const float (&scores)[thread_products], int j)
{
#define PGWARP_SCORES(n) \
    case n:              \
        return {scores[4 * n], scores[4 * n + 1], scores[4 * n + 2], scores[4 * n + 3]};
    switch (j) {
        PGWARP_SCORES(0)
        PGWARP_SCORES(1)
        PGWARP_SCORES(2)
        PGWARP_SCORES(3)
        PGWARP_SCORES(4)
        PGWARP_SCORES(5)
        PGWARP_SCORES(6)
        PGWARP_SCORES(7)
        PGWARP_SCORES(8)
        PGWARP_SCORES(9)
        PGWARP_SCORES(10)
        PGWARP_SCORES(11)
        PGWARP_SCORES(12)
        PGWARP_SCORES(13)
        PGWARP_SCORES(14)
        default:
            PGWARP_SCORES(15)
    }
#undef PGWARP_SCORES
}

// Calls emit(hit, query 0 or 1, column, score) by the whole warp for the scores of those groups that have one above its
// query's threshold; hit tells which scores are above. The loop is not unrolled, because 64 copies of emit would not
// stay in the instruction cache.
template <class Emit>
__device__ inline void emit_above(const float (&scores)[thread_products], float2 threshold, const Emit& emit)
{
    std::uint32_t groups = 0;
#pragma unroll
    for (int j = 0; j < thread_products / 4; ++j) {
        const bool hit = fmaxf(scores[4 * j], scores[4 * j + 1]) > threshold.x ||
                         fmaxf(scores[4 * j + 2], scores[4 * j + 3]) > threshold.y;
        groups |= hit ? 1U << j : 0U;
    }
#if __CUDA_ARCH__ >= 800
    groups = __reduce_or_sync(~0U, groups);
#else
    for (int offset = 16; offset > 0; offset /= 2) groups |= __shfl_xor_sync(~0U, groups, offset);
#endif
    const std::uint32_t column = 2 * (threadIdx.x % 4);
    while (groups != 0) {
        const int j = __ffs(static_cast<int>(groups)) - 1;
        groups &= groups - 1;
        const float4 four = scores_at(scores, j);
        emit(four.x > threshold.x, 0, 8 * j + column, four.x);
        emit(four.y > threshold.x, 0, 8 * j + column + 1, four.y);
        emit(four.z > threshold.y, 1, 8 * j + column, four.z);
        emit(four.w > threshold.y, 1, 8 * j + column + 1, four.w);
    }
}

__device__ inline void append(const Proposals& out, std::uint32_t slot, std::uint32_t position, float score)
{
    const std::uint32_t place = atomicAdd(&out.counts[slot], 1);
    if (place < out.capacity) out.entries[std::size_t{slot} * out.capacity + place] = {score, position};
}

}  // namespace pgwarp::cuda
