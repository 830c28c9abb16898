// The gate of a range (GENIE, section 4.2): which of the rows counted in shared memory may be among the k best of all.
// The AuditThreshold of a query is in global memory, and each range that holds k rows of a count raises it, so that few
// rows of later ranges are looked at. It never changes the answer.
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "matchcount/count_score.h"
#include "select/key.cuh"

namespace pgwarp::cuda::matchcount
{

// Counters of rows in shared memory, as many in a word as fit, in row order.
template <class Cell>
struct Counters {
    static constexpr std::uint32_t in_word = 4 / sizeof(Cell);
    static constexpr unsigned bits = 8 * sizeof(Cell);

    std::uint32_t* words;  // 16-byte aligned
    std::uint32_t rows;    // a multiple of 16

    static __device__ std::uint32_t cell(std::uint32_t word, std::uint32_t i)
    {
        if constexpr (in_word == 1) return word;
        return word >> i * bits & ((1U << bits % 32) - 1);
    }
    // Whether a counter of the word is at least `least` > 0.
    static __device__ bool reaches(std::uint32_t word, std::uint32_t least)
    {
        if constexpr (in_word == 4) return least < 256 && __vcmpgeu4(word, least * 0x01010101U) != 0;
        if constexpr (in_word == 2) return least < 65536 && __vcmpgeu2(word, least * 0x00010001U) != 0;
        return word >= least;
    }
    // Calls visit(row, count) for the rows of four words from `word` on whose counts are at least `least`, in row
    // order.
    template <class Visit>
    __device__ void visit_four(std::uint32_t word, std::uint32_t least, const Visit& visit) const
    {
        const uint4 four = *reinterpret_cast<const uint4*>(words + word);
        const std::uint32_t values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (std::uint32_t w = 0; w < 4; ++w) {
            if (!reaches(values[w], least)) continue;
            for (std::uint32_t i = 0; i < in_word; ++i) {
                const std::uint32_t count = cell(values[w], i);
                if (count >= least) visit((word + w) * in_word + i, count);
            }
        }
    }
};

// Rows of the index that a query may have, relative to the first row of the counters.
struct RowFilter {
    std::uint32_t begin;
    std::uint32_t end;
    const std::uint32_t* dead;  // from the first row of the counters on, a multiple of 32; null: none

    __device__ bool passes(std::uint32_t row) const
    {
        return row >= begin && row < end && (dead == nullptr || (dead[row / 32] >> row % 32 & 1) == 0);
    }
};

template <int threads>
struct GateMemory {
    std::uint32_t histogram[256];
    std::uint32_t threshold;
    std::uint32_t wanted;
    std::uint32_t slots;
    typename cub::BlockScan<std::uint32_t, threads>::TempStorage scan;
};

// The rows of a range that pass: all whose counts exceed `threshold`, and the first `ties` of those that reach it.
struct Passing {
    std::uint32_t threshold;
    std::uint32_t ties;
    bool full;  // k rows pass
};

// Finds the digit of the wanted-th largest row of the histogram, and the number of rows wanted of those with this
// digit; UINT32_MAX where there are fewer rows. One warp calls it.
template <int threads>
__device__ void find_digit(std::uint32_t wanted, GateMemory<threads>& memory)
{
    constexpr int own = 8;
    const int top = 255 - static_cast<int>(threadIdx.x) * own;
    std::uint32_t rows[own];
    std::uint32_t sum = 0;
    for (int i = 0; i < own; ++i) sum += rows[i] = memory.histogram[top - i];
    std::uint32_t reached = sum;
    for (int step = 1; step < 32; step *= 2) {
        const std::uint32_t before = __shfl_up_sync(0xffffffffU, reached, step);
        if (threadIdx.x >= step) reached += before;
    }
    if (threadIdx.x == 31 && reached < wanted) memory.threshold = UINT32_MAX;
    std::uint32_t above = reached - sum;
    if (above >= wanted || reached < wanted) return;
    int i = 0;
    while (above + rows[i] < wanted) above += rows[i++];
    memory.threshold = static_cast<std::uint32_t>(top - i);
    memory.wanted = wanted - above;
}

// Finds the k best of the rows that reach `least` >= 1. All threads of the block call it.
template <class Cell, int threads>
__device__ Passing find_passing(const Counters<Cell>& counters, const RowFilter& filter, std::uint32_t k,
                                std::uint32_t least, GateMemory<threads>& memory)
{
    std::uint32_t prefix = 0;
    std::uint32_t wanted = k;
    for (int shift = 8 * (static_cast<int>(sizeof(Cell)) - 1); shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += threads) memory.histogram[i] = 0;
        __syncthreads();
        for (std::uint32_t word = threadIdx.x * 4; word < counters.rows / counters.in_word; word += threads * 4)
            counters.visit_four(word, least, [&](std::uint32_t row, std::uint32_t count) {
                const bool matches = shift + 8 >= 32 || count >> (shift + 8) % 32 == prefix;
                if (matches && filter.passes(row)) atomicAdd(&memory.histogram[count >> shift & 255], 1);
            });
        __syncthreads();
        if (threadIdx.x < 32) find_digit(wanted, memory);
        __syncthreads();
        if (memory.threshold == UINT32_MAX) return {least, UINT32_MAX, false};
        prefix = prefix << 8 | memory.threshold;
        wanted = memory.wanted;
        __syncthreads();
    }
    return {prefix, wanted, true};
}

// Calls emit(slot, row, count) for each passing row, with slots from 0 on. Returns their number. All threads of the
// block call it.
template <class Cell, int threads, class Emit>
__device__ std::uint32_t emit_passing(const Counters<Cell>& counters, const RowFilter& filter, const Passing& passing,
                                      GateMemory<threads>& memory, const Emit& emit)
{
    if (threadIdx.x == 0) memory.slots = 0;
    __syncthreads();
    std::uint32_t earlier_ties = 0;
    const std::uint32_t words = counters.rows / counters.in_word;
    for (std::uint32_t tile = 0; tile < words; tile += threads * 4) {
        const std::uint32_t word = tile + threadIdx.x * 4;
        std::uint32_t ties = 0;
        if (word < words)
            counters.visit_four(word, passing.threshold, [&](std::uint32_t row, std::uint32_t count) {
                if (!filter.passes(row)) return;
                if (count == passing.threshold)
                    ++ties;
                else
                    emit(atomicAdd(&memory.slots, 1), row, count);
            });
        if (__syncthreads_or(static_cast<int>(ties)) == 0) continue;
        std::uint32_t tie = 0;
        std::uint32_t all = 0;
        cub::BlockScan<std::uint32_t, threads>(memory.scan).ExclusiveSum(ties, tie, all);
        tie += earlier_ties;
        if (ties > 0 && tie < passing.ties)
            counters.visit_four(word, passing.threshold, [&](std::uint32_t row, std::uint32_t count) {
                if (count != passing.threshold || !filter.passes(row)) return;
                if (tie++ < passing.ties) emit(atomicAdd(&memory.slots, 1), row, count);
            });
        earlier_ties = min(earlier_ties + all, 1U << 31);
        __syncthreads();
    }
    __syncthreads();
    return memory.slots;
}

}  // namespace pgwarp::cuda::matchcount
