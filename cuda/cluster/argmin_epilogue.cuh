// From the accumulators of a matrix tile to the best centroid, or the best two, of each row.
//
// A tile is 64 rows x 128 centroids; a thread holds, for two rows eight apart, columns 8 j + 2 (lane % 4) + {0, 1}: the
// layout of warp-group and warp matrix instructions alike. The low five bits of a score give way to its column within
// the thread, so that one minimum finds both.
#pragma once

#include <cstdint>

#include "cluster/assign_kernels.h"

namespace pgwarp::cuda
{

inline constexpr unsigned column_bits = 31;

template <bool exact>
struct RowBest {
    float first;
    int first_tile;
    float second;  // exact only
    int second_tile;

    __device__ void clear()
    {
        first = second = __uint_as_float(0x7F000000U);
        first_tile = second_tile = 0;
    }
    // The best two of one tile, low <= high.
    __device__ void take(float low, float high, int tile)
    {
        if constexpr (exact) {
            const bool replaces = low < first;
            const float runner = replaces ? fminf(first, high) : fminf(second, low);
            const int runner_tile =
                replaces ? (first <= high ? first_tile : tile) : (second <= low ? second_tile : tile);
            second = runner;
            second_tile = runner_tile;
            first_tile = replaces ? tile : first_tile;
            first = fminf(first, low);
        } else {
            first_tile = low < first ? tile : first_tile;
            first = fminf(first, low);
        }
    }
};

__device__ inline std::uint32_t decode_column(float key, int tile)
{
    const unsigned within = __float_as_uint(key) & column_bits;
    return static_cast<std::uint32_t>(tile) * centroid_tile + (within >> 1) * 8 + (threadIdx.x & 3) * 2 + (within & 1);
}

// Scores of one tile for `blocks` blocks of 64 rows into the running best: state [blocks][2].
template <bool exact, int blocks>
__device__ inline void score_tile(const float (&sums)[blocks][64], const float* half_norms,
                                  const float (&row_scale)[blocks][2], int tile, RowBest<exact> (&best)[blocks][2])
{
    float low[blocks][2];
    float high[blocks][2];
#pragma unroll
    for (int b = 0; b < blocks; ++b)
        for (int r = 0; r < 2; ++r) low[b][r] = high[b][r] = __uint_as_float(0x7F000000U);
    const int quad = threadIdx.x & 3;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        const float2 norm = *reinterpret_cast<const float2*>(half_norms + j * 8 + quad * 2);
#pragma unroll
        for (int b = 0; b < blocks; ++b) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int r = e / 2;
                const float score = fmaf(e % 2 == 0 ? norm.x : norm.y, row_scale[b][r], -sums[b][4 * j + e]);
                const unsigned column = static_cast<unsigned>(2 * j + e % 2);
                const float key = __uint_as_float((__float_as_uint(score) & ~column_bits) | column);
                if constexpr (exact) high[b][r] = fminf(high[b][r], fmaxf(low[b][r], key));
                low[b][r] = fminf(low[b][r], key);
            }
        }
    }
#pragma unroll
    for (int b = 0; b < blocks; ++b)
        for (int r = 0; r < 2; ++r) best[b][r].take(low[b][r], high[b][r], tile);
}

__device__ inline bool comes_before(float a, std::uint32_t a_index, float b, std::uint32_t b_index)
{
    return a < b || (a == b && a_index < b_index);
}

// The best two of two disjoint sets of centroids.
template <bool exact>
__device__ inline void take_better(TwoBest& best, const TwoBest& other)
{
    const bool swap = comes_before(other.first, other.first_index, best.first, best.first_index);
    if constexpr (exact) {
        const float beaten = swap ? best.first : other.first;
        const std::uint32_t beaten_index = swap ? best.first_index : other.first_index;
        const float runner = swap ? other.second : best.second;
        const std::uint32_t runner_index = swap ? other.second_index : best.second_index;
        const bool beaten_first = comes_before(beaten, beaten_index, runner, runner_index);
        best.second = beaten_first ? beaten : runner;
        best.second_index = beaten_first ? beaten_index : runner_index;
    }
    best.first = swap ? other.first : best.first;
    best.first_index = swap ? other.first_index : best.first_index;
}

// Merges the four lanes that share a row; all four return the same.
template <bool exact>
__device__ inline TwoBest merge_quad(const RowBest<exact>& own)
{
    TwoBest best{own.first, decode_column(own.first, own.first_tile), own.second,
                 exact ? decode_column(own.second, own.second_tile) : 0U};
#pragma unroll
    for (int offset = 1; offset < 4; offset *= 2) {
        TwoBest other;
        other.first = __shfl_xor_sync(~0U, best.first, offset);
        other.first_index = __shfl_xor_sync(~0U, best.first_index, offset);
        if constexpr (exact) {
            other.second = __shfl_xor_sync(~0U, best.second, offset);
            other.second_index = __shfl_xor_sync(~0U, best.second_index, offset);
        }
        take_better<exact>(best, other);
    }
    return best;
}

// Writes one row's outcome (one lane of its quad calls); returns 1 when a label changed. in_parts: the launch may have
// some of the centroids only.
template <bool exact, bool in_parts>
__device__ inline unsigned write_row(TwoBest best, std::size_t row, const AssignTask& task)
{
    if (in_parts && task.running != nullptr) {
        if (task.first_tile > 0) take_better<exact>(best, task.running[row]);
        if (task.end_tile < task.centroids.tile_count) {
            task.running[row] = best;
            return 0;
        }
    }
    // A row whose scores all overflow finds nothing: the first centroid serves it.
    const auto last = static_cast<std::uint32_t>(task.clusters - 1);
    const std::uint32_t first = best.first_index <= last ? best.first_index : 0;
    if constexpr (exact) {
        task.pairs[row] = make_uint2(first, best.second_index <= last ? best.second_index : first);
        return 0;
    } else {
        const bool differs = task.labels[row] != first;
        task.labels[row] = first;
        return differs ? 1U : 0U;
    }
}

}  // namespace pgwarp::cuda
