// Assignment by warp matrix instructions (compute capability 7.5 and up), over the same packed tiles. Copies of the
// next chunks run beside the products, where the device has asynchronous copies.
#include "cluster/argmin_epilogue.cuh"
#include "cluster/assign_kernels.h"
#include "device/error.h"
#include "rows/matrix_tile.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int block_rows = 64;
constexpr int threads = 128;
constexpr int row_bytes = block_rows * chunk_width * sizeof(__half);
constexpr int centroid_bytes = centroid_tile * chunk_width * sizeof(__half);
constexpr int stage_bytes = row_bytes + centroid_bytes;
static_assert(chunk_width == rows::tile_depth && centroid_tile == rows::strip_columns);

__device__ inline void copy_chunk(unsigned char* target, const __half* source, int bytes)
{
    for (int at = threadIdx.x * 16; at < bytes; at += threads * 16)
        rows::copy_piece(target + at, reinterpret_cast<const unsigned char*>(source) + at, true);
}

template <bool exact>
__global__ __launch_bounds__(threads, 4) void assign_portable_kernel(AssignTask task)
{
    __shared__ __align__(1024) unsigned char ring[rows::ring_stages * stage_bytes];
    constexpr int parts = exact ? 2 : 1;
    constexpr int passes = exact ? 3 : 1;
    const int chunks = static_cast<int>(task.chunks);
    const std::size_t tile = blockIdx.x / (row_tile / block_rows);
    const int block = blockIdx.x % (row_tile / block_rows);
    const __half* row_chunks =
        task.rows.tiles + (tile * parts * chunks * row_tile + std::size_t{block_rows} * block) * chunk_width;
    const int lane = threadIdx.x % 32;
    const int warp_row = threadIdx.x / 32 * 16;
    const std::size_t first_row = std::size_t{blockIdx.x} * block_rows + warp_row + lane / 4;
    const float row_scale[1][2] = {{task.rows.scale[first_row], task.rows.scale[first_row + 8]}};
    RowBest<exact> best[1][2];
    best[0][0].clear();
    best[0][1].clear();
    const int tile_steps = passes * chunks;
    const int steps = (task.end_tile - task.first_tile) * tile_steps;
    const auto load = [&](int step) {
        if (step < steps) {
            const std::size_t group = task.first_tile + step / tile_steps;
            const int pass = step % tile_steps / chunks;
            const int chunk = step % tile_steps % chunks;
            unsigned char* stage = ring + step % rows::ring_stages * stage_bytes;
            copy_chunk(stage, row_chunks + ((pass == 1 ? chunks : 0) + chunk) * row_tile * chunk_width, row_bytes);
            copy_chunk(stage + row_bytes,
                       task.centroids.tiles +
                           (group * parts * chunks + (pass == 2 ? chunks : 0) + chunk) * centroid_tile * chunk_width,
                       centroid_bytes);
        }
        rows::commit_copies();
    };
    float sums[1][rows::strip_sums] = {};
    if (rows::ring_stages > 1) load(0);
    for (int step = 0; step < steps; ++step) {
        if (rows::ring_stages == 1) {
            __syncthreads();
            load(step);
        }
        rows::wait_for_copies<0>();
        __syncthreads();
        if (rows::ring_stages > 1) load(step + 1);
        const unsigned char* stage = ring + step % rows::ring_stages * stage_bytes;
        rows::multiply_strip(sums[0], stage, warp_row, stage + row_bytes);
        if ((step + 1) % tile_steps != 0) continue;
        const int group = task.first_tile + step / tile_steps;
        score_tile<exact, 1>(sums, task.centroids.half_norms + group * centroid_tile, row_scale, group, best);
#pragma unroll
        for (float& sum : sums[0]) sum = 0;
    }
    unsigned differ = 0;
    for (int r = 0; r < 2; ++r) {
        const TwoBest found = merge_quad<exact>(best[0][r]);
        const std::size_t row = first_row + r * 8;
        if (lane % 4 == 0 && row < task.rows.count) differ += write_row<exact, true>(found, row, task);
    }
    if constexpr (!exact) {
        if (differ != 0) atomicAdd(task.changed, differ);
    }
}

}  // namespace

void assign_portable(const AssignTask& task, bool exact, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>((task.rows.count + block_rows - 1) / block_rows);
    if (exact) {
        assign_portable_kernel<true><<<blocks, threads, 0, stream>>>(task);
    } else {
        assign_portable_kernel<false><<<blocks, threads, 0, stream>>>(task);
    }
    check_launch("assign rows (portable)");
}

}  // namespace pgwarp::cuda
