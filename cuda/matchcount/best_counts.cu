#include "matchcount/best_counts.h"

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "device/carver.h"
#include "device/error.h"
#include "matchcount/count_score.h"
#include "select/key.cuh"
#include "select/select.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 128;

struct Selected {
    float* scores;
    std::uint32_t* rows;
    std::byte* workspace;
};

SelectShape shape_of(std::uint32_t queries, std::uint32_t places, std::uint32_t k)
{
    return {queries, places, places, k};
}

Selected lay_out(std::uint32_t queries, std::uint32_t places, std::uint32_t k, Carver& carver)
{
    Selected selected{};
    selected.scores = carver.take<float>(std::size_t{queries} * k);
    selected.rows = carver.take<std::uint32_t>(std::size_t{queries} * k);
    selected.workspace = carver.take<std::byte>(select_workspace_bytes(shape_of(queries, places, k)));
    return selected;
}

// Writes place `at` of the answers.
__device__ void write_row(const CountedRows& out, std::size_t at, std::uint32_t row, std::uint32_t count)
{
    out.rows[at] = row;
    if (out.counts != nullptr) out.counts[at] = count;
    if (out.distances != nullptr) out.distances[at] = static_cast<double>(-static_cast<std::int64_t>(count));
}

// Appends rows of count 0, of which matched[0, found) are none, in row order to the query's answer, which begins at
// place `begin`. Returns the number of all rows.
__device__ std::uint32_t append_rows(const RowsOfNoCount& others, const RowWindow& window, const std::uint32_t* matched,
                                     std::uint32_t found, std::uint32_t k, const CountedRows& out, std::size_t begin)
{
    constexpr std::uint32_t in_tile = threads * 32;
    __shared__ std::uint32_t taken[threads];  // a bit a row
    __shared__ typename cub::BlockScan<std::uint32_t, threads>::TempStorage scan;
    std::uint32_t filled = found;
    for (std::uint32_t tile = window.first / 32 * 32; tile < window.last && filled < k; tile += in_tile) {
        const std::uint32_t first = tile + threadIdx.x * 32;
        std::uint32_t outside = others.dead != nullptr && first < others.rows ? others.dead[first / 32] : 0;
        if (first < window.first) outside |= (1U << (window.first - first) % 32) - 1;
        if (first >= window.last)
            outside = 0xffffffffU;
        else if (window.last - first < 32)
            outside |= ~((1U << (window.last - first)) - 1);
        taken[threadIdx.x] = outside;
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < found; i += threads) {
            const std::uint32_t row = matched[i] - tile;
            if (row < in_tile) atomicOr(&taken[row / 32], 1U << row % 32);
        }
        __syncthreads();
        std::uint32_t free = ~taken[threadIdx.x];
        std::uint32_t place = 0;
        std::uint32_t all = 0;
        cub::BlockScan<std::uint32_t, threads>(scan).ExclusiveSum(__popc(free), place, all);
        for (place += filled; free != 0 && place < k; free &= free - 1, ++place)
            write_row(out, begin + place, first + __ffs(static_cast<int>(free)) - 1, 0);
        filled = min(k, filled + all);
        __syncthreads();
        if (tile > UINT32_MAX - in_tile) break;
    }
    return filled;
}

__global__ __launch_bounds__(threads) void finish_counts_kernel(Selected selected, RowsOfNoCount others,
                                                                std::uint32_t k, CountedRows out)
{
    const std::size_t query = blockIdx.x;
    const std::size_t begin = query * k;
    const float* scores = selected.scores + begin;
    const std::uint32_t* matched = selected.rows + begin;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < k; i += threads) {
        const std::uint32_t at = i + threadIdx.x;
        const bool is_row = at < k && scores[at] <= FLT_MAX;
        if (is_row) write_row(out, begin + at, matched[at], count_of_score(scores[at]));
        found += __syncthreads_count(is_row);
    }
    if (others.fill && found < k) {
        const RowWindow window = others.windows != nullptr ? others.windows[query] : RowWindow{0, others.rows};
        found = append_rows(others, {window.first, min(window.last, others.rows)}, matched, found, k, out, begin);
    }
    if (threadIdx.x == 0) out.found[query] = found;
}

}  // namespace

std::size_t best_counts_workspace_bytes(std::uint32_t queries, std::uint32_t places, std::uint32_t k)
{
    return carved_bytes([&](Carver& carver) { (void)lay_out(queries, places, k, carver); });
}

void best_counts(const PassedRows& passed, const RowsOfNoCount& others, std::uint32_t k, const CountedRows& out,
                 std::byte* workspace, cudaStream_t stream)
{
    if (passed.queries == 0) return;
    Carver carver(workspace);
    const Selected selected = lay_out(passed.queries, passed.places, k, carver);
    select_smallest_with_ids(passed.scores, passed.rows, shape_of(passed.queries, passed.places, k), selected.scores,
                             selected.rows, selected.workspace, stream);
    finish_counts_kernel<<<passed.queries, threads, 0, stream>>>(selected, others, k, out);
    check_launch("finishing counts");
}

}  // namespace pgwarp::cuda::matchcount
