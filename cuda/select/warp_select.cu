// Selection by register queues, for small k. Many short rows: a warp for each row. Few rows: blocks take parts of a
// row, each warp takes its own tiles, and the block's first warp merges the queues.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "device/error.h"
#include "select/kernels.h"
#include "select/row_span.cuh"
#include "select/warp_queue.cuh"

namespace pgwarp::cuda
{
namespace
{

constexpr int unrolled = 8;  // scores that a lane loads at a time

// Columns [begin, end) of the row in tiles. A warp takes every `step`-th column from its own `begin` on as the start of
// a tile.
struct WarpTiles {
    std::uint32_t begin, end, step;
};

__device__ __forceinline__ void load_tile(float (&scores)[unrolled], const float* values, std::uint32_t first,
                                          std::uint32_t end)
{
#pragma unroll
    for (int i = 0; i < unrolled; i++) {
        const std::uint32_t column = first + 32 * i + threadIdx.x % 32;
        scores[i] = column < end ? __ldcs(values + column) : INFINITY;
    }
}

template <int capacity, bool with_ids>
__device__ __forceinline__ void push_tiles(WarpQueue<capacity>& queue, const SelectInput& input, std::int64_t row,
                                           const WarpTiles& tiles)
{
    const float* values = input.values + row * input.stride;
    float next[unrolled];
    load_tile(next, values, tiles.begin, tiles.end);
    for (std::uint32_t first = tiles.begin; first < tiles.end; first += tiles.step) {
        float scores[unrolled];
        float nearest = INFINITY;
#pragma unroll
        for (int i = 0; i < unrolled; i++) {
            scores[i] = next[i];
            nearest = fminf(nearest, scores[i]);
        }
        load_tile(next, values, first + tiles.step, tiles.end);
        const unsigned near = __ballot_sync(detail::full_warp, nearest <= queue.bound());
        if (near == 0) continue;
        // True for the first tile, and for every tile of a row that descends.
        if (__popc(near) >= 16) queue.prime(nearest);
        queue.push_each(scores, [&](unsigned i) {
            const std::uint32_t column = first + 32 * i + threadIdx.x % 32;
            if constexpr (with_ids)
                return __ldg(input.ids + row * input.stride + column);
            else
                return column;
        });
    }
}

// With splits > 0, block b selects from part b % splits of row b / splits; with splits = 0, each warp selects from a
// row.
template <int capacity, bool with_ids>
__global__ void __launch_bounds__(256)
    warp_select_kernel(SelectInput input, std::int64_t rows, std::uint32_t columns, unsigned splits, int k,
                       float* selected_values, std::uint32_t* selected_ids)
{
    constexpr unsigned tile = 32 * unrolled, most_warps = 8;
    __shared__ typename WarpQueue<capacity>::Shared shared[most_warps];
    extern __shared__ SelectKey handed[];  // [warps][k]
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    WarpQueue<capacity> queue(shared[warp], k);
    if (splits == 0) {
        const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + warp;
        if (row >= rows) return;
        push_tiles<capacity, with_ids>(queue, input, row, {0, columns, tile});
        queue.write(selected_values + row * k, selected_ids + row * k);
        return;
    }
    const std::int64_t part = blockIdx.x;
    const std::uint64_t split = part % splits;
    const auto begin = static_cast<std::uint32_t>(columns * split / splits) + warp * tile;
    const auto end = static_cast<std::uint32_t>(columns * (split + 1) / splits);
    push_tiles<capacity, with_ids>(queue, input, part / splits, {begin, end, warps * tile});
    if (warp > 0) queue.write_keys(handed + warp * k);
    __syncthreads();
    if (warp > 0) return;
    for (unsigned first = k; first < warps * k; first += 32)
        queue.push_key(first + lane < warps * k ? handed[first + lane] : padding_key);
    queue.write(selected_values + part * k, selected_ids + part * k);
}

template <int capacity>
void launch(const detail::SelectOperands& operands, int splits, cudaStream_t stream)
{
    const auto kernel =
        operands.ids != nullptr ? warp_select_kernel<capacity, true> : warp_select_kernel<capacity, false>;
    const auto k = static_cast<int>(operands.k);
    const SelectInput input{operands.values, operands.ids, operands.stride};
    if (splits > 0) {
        constexpr int warps = 8;
        kernel<<<static_cast<unsigned>(operands.rows * splits), 32 * warps, warps * k * sizeof(SelectKey), stream>>>(
            input, operands.rows, static_cast<std::uint32_t>(operands.columns), static_cast<unsigned>(splits), k,
            operands.selected_values, operands.selected_ids);
        check_launch("warp_select_kernel");
        return;
    }
    constexpr int warps = 4;
    const std::int64_t rows_per_launch =
        std::max<std::int64_t>(warps, (std::int64_t{1} << 30) / (operands.columns + 1) / warps * warps);
    for (std::int64_t first = 0; first < operands.rows; first += rows_per_launch) {
        const std::int64_t rows = std::min(rows_per_launch, operands.rows - first), skipped = first * operands.stride;
        const SelectInput here{input.values + skipped, input.ids != nullptr ? input.ids + skipped : nullptr,
                               input.stride};
        kernel<<<static_cast<unsigned>((rows + warps - 1) / warps), 32 * warps, 0, stream>>>(
            here, rows, static_cast<std::uint32_t>(operands.columns), 0, k,
            operands.selected_values + first * operands.k, operands.selected_ids + first * operands.k);
        check_launch("warp_select_kernel");
    }
}

}  // namespace

namespace detail
{

void select_by_warps(const SelectOperands& operands, int splits, cudaStream_t stream)
{
    if (operands.k <= 32)
        launch<32>(operands, splits, stream);
    else if (operands.k <= 128)
        launch<128>(operands, splits, stream);
    else
        launch<256>(operands, splits, stream);
}

}  // namespace detail
}  // namespace pgwarp::cuda
