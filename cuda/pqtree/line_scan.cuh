// The ranking of candidates by their line codes, by a whole block (Wieschollek et al., section 3.3). The block keeps
// the keys of rows that may be among the `wanted` best: a score limit, raised by selections, lets few rows pass.
#pragma once

#include <cfloat>
#include <cstdint>

#include "pqtree/block.cuh"
#include "pqtree/terms.cuh"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

// The scale of scores, and the numbers of rows that a block wants and keeps.
struct LineRanking {
    TermScale scale;
    std::uint32_t wanted;
    std::uint32_t room;         // keys
    std::uint32_t tile;         // rows between two looks at the number of keys
    const std::uint32_t* dead;  // one bit for each position, or null
};

namespace detail
{

// Adds base * place_steps + slope * place of a line part; its place is byte i of `places`.
__device__ inline int add_term(std::uint32_t term, std::uint32_t places, std::uint32_t i, int sum)
{
    // The bytes place_steps, place, 0, 0.
    const std::uint32_t weights = __byte_perm(places, place_steps, 0x6504U | i << 4);
#if __CUDA_ARCH__ >= 610
    asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(term), "r"(weights));
    return sum;
#else
    return sum + static_cast<std::int16_t>(term & 0xffffU) * place_steps +
           static_cast<std::int16_t>(term >> 16) * static_cast<int>(weights >> 8);
#endif
}

// The sum over a group of line parts; terms: of its first line part.
__device__ inline int group_sum(const std::uint32_t* terms, const uint4& code)
{
    int sum = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < group_parts; ++i) {
        const std::uint32_t lines = i < 4 ? code.x : code.y;
        const std::uint32_t places = i < 4 ? code.z : code.w;
        const std::uint32_t term = terms[i * line_room + (lines >> 8 * (i % 4) & 0xffU)];
        sum = add_term(term, places, i % 4, sum);
    }
    return sum;
}

// A row's first group of a lane and its bias, on their way from memory.
struct FetchedRow {
    std::uint32_t position;
    std::uint32_t bias;
    uint4 code;
};

__device__ inline FetchedRow fetch_row(const ListsView& lists, std::uint32_t groups, std::uint32_t lane,
                                       std::uint32_t position)
{
    return {position, lists.biases[position], lists.codes[std::size_t{position} * groups + lane]};
}

// The score of a row. `lanes` neighbouring lanes share it, each with its groups; all of them get the score.
__device__ inline float score_row(const ListsView& lists, const std::uint32_t* terms, std::uint32_t groups,
                                  std::uint32_t lanes, const TermScale& scale, const FetchedRow& row)
{
    const std::uint32_t lane = threadIdx.x & (lanes - 1);
    int sum = group_sum(terms + lane * group_parts * line_room, row.code);
    for (std::uint32_t group = lane + lanes; group < groups; group += lanes)
        sum +=
            group_sum(terms + group * group_parts * line_room, lists.codes[std::size_t{row.position} * groups + group]);
    for (std::uint32_t step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, static_cast<int>(step));
    const float fixed = lists.lowest_bias + lists.bias_step * static_cast<float>(row.bias) + scale.shift;
    return fmaf(static_cast<float>(sum), scale.unit, fixed);
}

// Writes the positions of rows [first, last) of the listed bins to `tile`. Eight lanes take a bin.
template <int Threads>
__device__ void fill_tile(const uint2* bins, std::uint32_t listed, std::uint32_t rows, std::uint32_t first,
                          std::uint32_t last, std::uint32_t* tile)
{
    std::uint32_t low = 0;  // the last bin that begins at `first` or before
    for (std::uint32_t high = listed; high - low > 1;) {
        const std::uint32_t middle = (low + high) / 2;
        if (bins[middle].y <= first) {
            low = middle;
        } else {
            high = middle;
        }
    }
    for (std::uint32_t i = low + threadIdx.x / 8; i < listed; i += Threads / 8) {
        const uint2 bin = bins[i];
        if (bin.y >= last) break;
        const std::uint32_t end = i + 1 < listed ? bins[i + 1].y : rows;
        for (std::uint32_t at = max(bin.y, first) + threadIdx.x % 8; at < min(end, last); at += 8)
            tile[at - first] = bin.x + at - bin.y;
    }
}

}  // namespace detail

// Keeps the `wanted` smallest keys, or some more up to `most`, and lowers the limit. All threads call; begins and ends
// with a barrier.
template <int Threads>
__device__ void select_keys(const BlockSpace& space, const LineRanking& ranking, std::uint32_t most, BlockState& state)
{
    __syncthreads();
    float limit = state.limit;
    const std::uint32_t kept = keep_smallest<Threads>(space.keys, state.kept, ranking.wanted, most,
                                                      *reinterpret_cast<RankShared*>(space.scratch), limit);
    if (threadIdx.x == 0) {
        state.kept = kept;
        state.limit = limit;
    }
    __syncthreads();
}

// Scores the rows [begin, end) of the `rows` in the listed bins, {begin, rows before}, and keeps those within the
// limit. Begins and ends with a barrier.
template <int Threads>
__device__ void scan_bins(const MirrorView& mirror, const BlockSpace& space, const LineRanking& ranking,
                          std::uint32_t listed, std::uint32_t rows, BlockState& state)
{
    const std::uint32_t groups = code_groups(mirror.tree.line_parts);
    const std::uint32_t lanes = lanes_of_row(groups);
    const std::uint32_t lane = threadIdx.x & (lanes - 1);
    const std::uint32_t at_once = Threads / lanes;
    __syncthreads();
    for (std::uint32_t first = 0; first < rows; first += ranking.tile) {
        const std::uint32_t last = min(rows, first + ranking.tile);
        if (state.kept > ranking.room - ranking.tile)
            select_keys<Threads>(space, ranking, kept_of(ranking.wanted), state);
        detail::fill_tile<Threads>(space.bins, listed, rows, first, last, space.scratch);
        __syncthreads();
        const float limit = state.limit;
        const auto fetch = [&](std::uint32_t at) {
            return detail::fetch_row(mirror.lists, groups, lane, space.scratch[min(at, last - 1) - first]);
        };
        // The next row is read while one is scored.
        detail::FetchedRow next = fetch(first + threadIdx.x / lanes);
        for (std::uint32_t base = first; base < last; base += at_once) {
            const std::uint32_t at = base + threadIdx.x / lanes;
            const detail::FetchedRow row = next;
            if (base + at_once < last) next = fetch(at + at_once);
            const float score = detail::score_row(mirror.lists, space.terms, groups, lanes, ranking.scale, row);
            bool passes = at < last && lane == 0 && score <= limit;
            if (passes && ranking.dead != nullptr)
                passes = (ranking.dead[row.position / 32] >> row.position % 32 & 1U) == 0;
            if (!__any_sync(~0U, passes)) continue;
            const std::uint32_t place = take_place(passes, &state.kept);
            if (passes) space.keys[place] = make_key(score, row.position);
        }
        __syncthreads();
    }
}

}  // namespace pgwarp::cuda::pqtree
