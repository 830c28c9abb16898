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

// What the block ranks by, and what it wants.
struct LineRanking {
    TermScale scale;
    std::uint32_t wanted;
    std::uint32_t room;         // keys
    const std::uint32_t* dead;  // one bit for each position, or null
};

namespace detail
{

// The order in which a lane goes over the line parts of a unit: step i is line part i ^ start.
template <std::uint32_t Unit>
struct UnitOrder {
    std::uint32_t start;

    __device__ UnitOrder() : start(threadIdx.x & (Unit - 1)) {}
    // Reorders words of four line parts each.
    __device__ void reorder(std::uint32_t (&words)[Unit / 4]) const
    {
        const auto swap_if = [](bool swaps, std::uint32_t& a, std::uint32_t& b) {
            const std::uint32_t other = swaps ? b : a;
            b = swaps ? a : b;
            a = other;
        };
        swap_if((start & 4) != 0, words[0], words[1]);
        if constexpr (Unit == 16) {
            swap_if((start & 4) != 0, words[2], words[3]);
            swap_if((start & 8) != 0, words[0], words[2]);
            swap_if((start & 8) != 0, words[1], words[3]);
        }
    }
};

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

// The codes of a unit, as they lie in memory.
template <std::uint32_t Unit>
struct UnitCodes {
    uint4 groups[Unit / group_parts];

    // The sum over the unit; terms: [line_room][Unit].
    __device__ int sum(const std::uint32_t* terms, const UnitOrder<Unit>& order) const
    {
        std::uint32_t lines[Unit / 4];
        std::uint32_t places[Unit / 4];
#pragma unroll
        for (std::uint32_t g = 0; g < Unit / group_parts; ++g) {
            lines[2 * g] = groups[g].x;
            lines[2 * g + 1] = groups[g].y;
            places[2 * g] = groups[g].z;
            places[2 * g + 1] = groups[g].w;
        }
        order.reorder(lines);
        order.reorder(places);
        std::uint32_t start = order.start;
        asm volatile("" : "+r"(start));  // or the compiler keeps a place of every line part in a register
        int sum = 0;
#pragma unroll
        for (std::uint32_t i = 0; i < Unit; ++i) {
            const std::uint32_t byte = (i ^ start) & 3;
            const std::uint32_t line = __byte_perm(lines[i / 4], 0, 0x4440U | byte);
            sum = add_term(terms[line * Unit + (i ^ start)], places[i / 4], byte, sum);
        }
        return sum;
    }
};

// How lanes share rows: `lanes` neighbouring ones a row, each with its units.
struct RowLanes {
    std::uint32_t units;
    std::uint32_t lanes;
    std::uint32_t lane;
};

template <std::uint32_t Unit>
__device__ UnitCodes<Unit> read_unit(const ListsView& lists, const RowLanes& share, std::uint32_t position,
                                     std::uint32_t unit)
{
    constexpr std::uint32_t groups = Unit / group_parts;
    const uint4* from = lists.codes + (std::size_t{position} * share.units + unit) * groups;
    UnitCodes<Unit> codes;
#pragma unroll
    for (std::uint32_t g = 0; g < groups; ++g) codes.groups[g] = from[g];
    return codes;
}

// A row's first unit of a lane and its bias, on their way from memory.
template <std::uint32_t Unit>
struct FetchedRow {
    std::uint32_t position;
    std::uint32_t bias;
    UnitCodes<Unit> codes;
};

// The score of a row. All lanes that share it get the score.
template <std::uint32_t Unit>
__device__ float score_row(const ListsView& lists, const std::uint32_t* terms, const RowLanes& share,
                           const UnitOrder<Unit>& order, const TermScale& scale, const FetchedRow<Unit>& row)
{
    int sum = row.codes.sum(terms + share.lane * Unit * line_room, order);
    for (std::uint32_t unit = share.lane + share.lanes; unit < share.units; unit += share.lanes)
        sum += read_unit<Unit>(lists, share, row.position, unit).sum(terms + unit * Unit * line_room, order);
    for (std::uint32_t step = share.lanes / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0U, sum, static_cast<int>(step));
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

namespace detail
{

// Scores the rows scratch[0, count) and keeps those within the limit.
template <int Threads, std::uint32_t Unit>
__device__ void scan_tile(const MirrorView& mirror, const BlockSpace& space, const LineRanking& ranking,
                          std::uint32_t count, BlockState& state)
{
    const std::uint32_t units = code_groups(mirror.tree.line_parts) * group_parts / Unit;
    const std::uint32_t lanes = lanes_of_row(units);
    const RowLanes share{units, lanes, threadIdx.x & (lanes - 1)};
    const UnitOrder<Unit> order;
    const float limit = state.limit;
    const auto fetch = [&](std::uint32_t at) {
        const std::uint32_t position = space.scratch[min(at, count - 1)];
        return FetchedRow<Unit>{position, mirror.lists.biases[position],
                                read_unit<Unit>(mirror.lists, share, position, share.lane)};
    };
    // The next row is read while one is scored.
    FetchedRow<Unit> next = fetch(threadIdx.x / lanes);
    for (std::uint32_t base = 0; base < count; base += Threads / lanes) {
        const std::uint32_t at = base + threadIdx.x / lanes;
        const FetchedRow<Unit> row = next;
        if (base + Threads / lanes < count) next = fetch(at + Threads / lanes);
        const float score = score_row(mirror.lists, space.terms, share, order, ranking.scale, row);
        bool passes = at < count && share.lane == 0 && score <= limit;
        if (passes && ranking.dead != nullptr)
            passes = (ranking.dead[row.position / 32] >> row.position % 32 & 1U) == 0;
        if (!__any_sync(~0U, passes)) continue;
        const std::uint32_t place = take_place(passes, &state.kept);
        if (passes) space.keys[place] = make_key(score, row.position);
    }
}

}  // namespace detail

// Scores the rows of the listed bins, {begin, rows before}, and keeps those within the limit. Begins with a barrier,
// and ends with one where there are rows.
template <int Threads>
__device__ void scan_bins(const MirrorView& mirror, const BlockSpace& space, const LineRanking& ranking,
                          std::uint32_t listed, std::uint32_t rows, BlockState& state)
{
    const bool wide = unit_parts(code_groups(mirror.tree.line_parts)) > group_parts;
    __syncthreads();
    for (std::uint32_t first = 0; first < rows; first += tile_rows) {
        const std::uint32_t last = min(rows, first + tile_rows);
        if (state.kept > ranking.room - tile_rows) select_keys<Threads>(space, ranking, kept_of(ranking.wanted), state);
        detail::fill_tile<Threads>(space.bins, listed, rows, first, last, space.scratch);
        __syncthreads();
        if (wide) {
            detail::scan_tile<Threads, 2 * group_parts>(mirror, space, ranking, last - first, state);
        } else {
            detail::scan_tile<Threads, group_parts>(mirror, space, ranking, last - first, state);
        }
        __syncthreads();
    }
}

}  // namespace pgwarp::cuda::pqtree
