// The counting of one query in one range of rows, in shared memory. The warps of a block share the postings of all
// items evenly, however long the lists are (GENIE, section 4.1: load balance).
#pragma once

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "matchcount/range_gate.cuh"
#include "matchcount/slices.cuh"

namespace pgwarp::cuda::matchcount
{

// Threads of a block by the counters' width: as many blocks run at a time as the counters leave room for.
template <class Cell>
inline constexpr int count_threads = sizeof(Cell) == 1 ? 512 : 1024;
// Blocks of a multiprocessor, where it has the shared memory of sm_90.
template <class Cell>
inline constexpr int count_blocks =
#if __CUDA_ARCH__ >= 900
    sizeof(Cell) == 1 ? 3 : 1;
#else
    1;
#endif

template <int threads>
struct SliceMemory {
    std::uint32_t starts[threads];
    std::uint64_t ends[threads];  // sums of the lengths
    typename cub::BlockScan<std::uint64_t, threads>::TempStorage scan;
};

// Counts one posting. `whole`: the counters are those of the whole range; else rows outside [first, first + rows) are
// left out.
template <class Cell, bool whole>
__device__ __forceinline__ void count_posting(const Counters<Cell>& counters, std::uint32_t first, std::uint32_t row)
{
    if constexpr (!whole) {
        row -= first;
        if (row >= counters.rows) return;
    }
    if constexpr (sizeof(Cell) == 1)
        atomicAdd(counters.words + (row >> 2), __funnelshift_l(0, 1, row << 3));  // shifts by the low five bits
    else if constexpr (sizeof(Cell) == 2)
        atomicAdd(counters.words + (row >> 1), __funnelshift_l(0, 1, row << 4));
    else
        atomicAdd(counters.words + row, 1);
}

template <class Cell, bool whole>
__device__ __forceinline__ void count_eight(const Counters<Cell>& counters, std::uint32_t first, const uint4& postings)
{
    const std::uint32_t pairs[4] = {postings.x, postings.y, postings.z, postings.w};
#pragma unroll
    for (const std::uint32_t pair : pairs) {
        count_posting<Cell, whole>(counters, first, pair & 0xffffU);
        count_posting<Cell, whole>(counters, first, pair >> 16);
    }
}

// Counts postings[0, count). One warp calls it. Its middle is read in vectors of eight.
template <class Cell, bool whole>
__device__ void count_postings(const Counters<Cell>& counters, std::uint32_t first, const std::uint16_t* postings,
                               std::uint32_t count)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t head =
        min(count, static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(postings) / 2 % 8));
    const std::uint32_t vectors = (count - head) / 8;
    const std::uint32_t tail = head + vectors * 8;
    const std::uint32_t edge = lane < 8 ? lane : tail + lane - 8;
    if (edge < (lane < 8 ? head : count)) count_posting<Cell, whole>(counters, first, postings[edge]);
    const auto* middle = reinterpret_cast<const uint4*>(postings + head);
#pragma unroll 2
    for (std::uint32_t i = lane; i < vectors; i += 32) count_eight<Cell, whole>(counters, first, middle[i]);
}

// Counts items[0, count) in the rows of a range from `first` on. All threads of the block call it; it ends with a
// barrier.
template <class Cell, bool whole, int threads>
__device__ void count_range(const KeywordListsView& lists, std::uint32_t range, const Item* items, std::uint32_t count,
                            const Counters<Cell>& counters, std::uint32_t first, SliceMemory<threads>& memory)
{
    for (std::uint32_t i = threadIdx.x * 4; i < counters.rows / counters.in_word; i += threads * 4)
        *reinterpret_cast<uint4*>(counters.words + i) = {};
    const std::uint16_t* const postings = lists.list_array + lists.range_starts[range];
    for (std::uint32_t tile = 0; tile < count; tile += threads) {
        Slice slice;
        if (tile + threadIdx.x < count) {
            const Item item = items[tile + threadIdx.x];
            slice = slice_of(lists, range, item);
            // Parts of less than a section are left to count_posting().
            if (!whole && item.first == item.last && counters.rows % section_rows == 0)
                slice = cut_slice(postings, slice, first, counters.rows);
        }
        memory.starts[threadIdx.x] = slice.start;
        std::uint64_t end = 0;
        std::uint64_t all = 0;
        cub::BlockScan<std::uint64_t, threads>(memory.scan).InclusiveSum(slice.length, end, all);
        memory.ends[threadIdx.x] = end;
        __syncthreads();
        constexpr std::uint32_t warps = threads / 32;
        std::uint64_t at = all * (threadIdx.x / 32) / warps;
        const std::uint64_t stop = all * (threadIdx.x / 32 + 1) / warps;
        std::uint32_t i = first_at_least(memory.ends, static_cast<std::uint32_t>(threads), at + 1);
        while (at < stop) {
            const std::uint64_t begin = i == 0 ? 0 : memory.ends[i - 1];
            const std::uint64_t piece_end = min(memory.ends[i], stop);
            if (piece_end > at)
                count_postings<Cell, whole>(counters, first, postings + memory.starts[i] + (at - begin),
                                            static_cast<std::uint32_t>(piece_end - at));
            at = piece_end;
            ++i;
        }
        __syncthreads();
    }
    if (count == 0) __syncthreads();
}

}  // namespace pgwarp::cuda::matchcount
