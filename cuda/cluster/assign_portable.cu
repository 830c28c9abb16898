// Assignment by warp matrix instructions (compute capability 7.5 and up), over the same packed tiles.
#include "cluster/argmin_epilogue.cuh"
#include "cluster/assign_kernels.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int block_rows = 64;
constexpr int threads = 128;
constexpr int block_chunk = block_rows * chunk_width;        // halves
constexpr int centroid_chunk = centroid_tile * chunk_width;  // halves

// Two halves at (row, column) of a swizzled chunk; column is even.
__device__ inline unsigned load_pair(const __half* chunk, int row, int column)
{
    const int unit = (column >> 3) ^ (row & 7);
    return *reinterpret_cast<const unsigned*>(chunk + row * chunk_width + unit * 8 + (column & 7));
}

__device__ inline void multiply(float* sums, const unsigned (&rows)[2], unsigned centroids)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(rows[0]), "r"(rows[1]), "r"(centroids));
}

__device__ inline void copy_chunk(__half* target, const __half* source, int halves)
{
    for (int at = threadIdx.x * 8; at < halves; at += threads * 8)
        *reinterpret_cast<uint4*>(target + at) = *reinterpret_cast<const uint4*>(source + at);
}

// Products of a warp's 16 rows with 128 centroids over one chunk.
__device__ void multiply_chunk(float (&sums)[64], const __half* rows, const __half* centroids)
{
    const int lane = threadIdx.x % 32;
    const int own = threadIdx.x / 32 * 16 + lane / 4;
    for (int k = 0; k < chunk_width; k += 8) {
        const int column = k + lane % 4 * 2;
        const unsigned pair[2] = {load_pair(rows, own, column), load_pair(rows, own + 8, column)};
#pragma unroll
        for (int j = 0; j < 16; ++j) multiply(sums + 4 * j, pair, load_pair(centroids, j * 8 + lane / 4, column));
    }
}

template <bool exact>
__global__ __launch_bounds__(threads) void assign_portable_kernel(AssignTask task)
{
    __shared__ __align__(16) __half rows[block_chunk];
    __shared__ __align__(16) __half centroids[centroid_chunk];
    __shared__ __align__(16) float norms[centroid_tile];
    constexpr int parts = exact ? 2 : 1;
    constexpr int passes = exact ? 3 : 1;
    const int chunks = static_cast<int>(task.chunks);
    const std::size_t tile = blockIdx.x / (row_tile / block_rows);
    const int block = blockIdx.x % (row_tile / block_rows);
    const __half* row_chunks = task.rows.tiles + tile * parts * chunks * row_tile * chunk_width + block * block_chunk;
    const int lane = threadIdx.x % 32;
    const std::size_t first_row = std::size_t{blockIdx.x} * block_rows + threadIdx.x / 32 * 16 + lane / 4;
    const float row_scale[1][2] = {{task.rows.scale[first_row], task.rows.scale[first_row + 8]}};
    RowBest<exact> best[1][2];
    best[0][0].clear();
    best[0][1].clear();
    for (int group = task.first_tile; group < task.end_tile; ++group) {
        const __half* centroid_chunks = task.centroids.tiles + std::size_t(group) * parts * chunks * centroid_chunk;
        float sums[1][64] = {};
        for (int v = 0; v < passes * chunks; ++v) {
            const int pass = v / chunks;
            const int chunk = v % chunks;
            __syncthreads();
            copy_chunk(rows, row_chunks + ((pass == 1 ? chunks : 0) + chunk) * row_tile * chunk_width, block_chunk);
            copy_chunk(centroids, centroid_chunks + ((pass == 2 ? chunks : 0) + chunk) * centroid_chunk,
                       centroid_chunk);
            if (v == 0) norms[threadIdx.x] = task.centroids.half_norms[group * centroid_tile + threadIdx.x];
            __syncthreads();
            multiply_chunk(sums[0], rows, centroids);
        }
        score_tile<exact, 1>(sums, norms, row_scale, group, best);
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
