#include "cluster/row_products.h"

#include <algorithm>

#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int tile = 128;  // of either side; a thread computes 8 x 8
constexpr int depth = 16;
constexpr int threads = 256;
constexpr int pad = 4;

struct ProductTask {
    const float* left;  // [left_count][dimensions]
    std::size_t left_count;
    ResidualBase base;  // of the left rows
    const float* right;
    std::size_t right_count;
    std::size_t dimensions;
    const float* norms;  // of the right rows
    float factor;        // out = norms + factor * product
    float* out;
    std::size_t stride;
};

// Dimensions [k, k + depth) of 128 rows, transposed: 16 threads read 16 neighbours of one row.
__device__ inline void load_tile(const float* rows, std::size_t count, const ResidualBase& base, std::size_t dimensions,
                                 std::size_t first, std::size_t k, float (&shared)[depth][tile + pad])
{
    const int e = threadIdx.x % depth;
    const std::size_t column = k + e;
    for (int r = threadIdx.x / depth; r < tile; r += threads / depth) {
        const std::size_t row = first + r;
        float value = 0;
        if (row < count && column < dimensions) {
            value = rows[row * dimensions + column];
            if (base.labels != nullptr) value -= base.centroids[base.labels[row] * dimensions + column];
        }
        shared[e][r] = value;
    }
}

__global__ __launch_bounds__(threads) void row_products_kernel(ProductTask task)
{
    __shared__ __align__(16) float left[depth][tile + pad];
    __shared__ __align__(16) float right[depth][tile + pad];
    const std::size_t first_left = std::size_t{blockIdx.y} * tile;
    const std::size_t first_right = std::size_t{blockIdx.x} * tile;
    const int x = threadIdx.x % 16;
    const int y = threadIdx.x / 16;
    float sums[8][8] = {};
    for (std::size_t k = 0; k < task.dimensions; k += depth) {
        __syncthreads();
        load_tile(task.left, task.left_count, task.base, task.dimensions, first_left, k, left);
        load_tile(task.right, task.right_count, {}, task.dimensions, first_right, k, right);
        __syncthreads();
#pragma unroll
        for (int e = 0; e < depth; ++e) {
            float a[8];
            float b[8];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<const float4*>(&left[e][y * 4]);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<const float4*>(&left[e][64 + y * 4]);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(&right[e][x * 4]);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<const float4*>(&right[e][64 + x * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const std::size_t row = first_left + (i / 4) * 64 + y * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const std::size_t column = first_right + (j / 4) * 64 + x * 4 + j % 4;
            if (row >= task.left_count || column >= task.right_count) continue;
            const float norm = task.norms != nullptr ? task.norms[column] : 0.0F;
            task.out[row * task.stride + column] = fmaf(task.factor, sums[i][j], norm);
        }
    }
}

__global__ __launch_bounds__(threads) void squared_norms_kernel(const float* rows, std::size_t count,
                                                                std::size_t dimensions, float* out)
{
    const std::size_t i = (std::size_t{blockIdx.x} * threads + threadIdx.x) / 32;
    if (i >= count) return;
    float sum = 0;
    for (std::size_t e = threadIdx.x % 32; e < dimensions; e += 32) {
        const float value = rows[i * dimensions + e];
        sum = fmaf(value, value, sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0U, sum, offset);
    if (threadIdx.x % 32 == 0) out[i] = sum;
}

// Rows of one side in a launch of little more than a millisecond.
std::size_t launch_rows(std::size_t others, std::size_t dimensions)
{
    const std::size_t rounded = (others + tile - 1) / tile * tile;
    return std::clamp<std::size_t>((std::size_t{1} << 34) / (rounded * dimensions * tile), 1, 4096) * tile;
}

unsigned tiles(std::size_t rows)
{
    return static_cast<unsigned>((rows + tile - 1) / tile);
}

}  // namespace

void rotate_rows(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base,
                 const float* rotation, float* out, cudaStream_t stream)
{
    const std::size_t step = std::min(launch_rows(dimensions, dimensions), std::size_t{tile} * 65535);
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        ResidualBase piece = base;
        if (piece.labels != nullptr) piece.labels += first;
        row_products_kernel<<<dim3(tiles(dimensions), tiles(here)), threads, 0, stream>>>(
            {rows + first * dimensions, here, piece, rotation, dimensions, dimensions, nullptr, 1.0F,
             out + first * dimensions, dimensions});
        check_launch("rotate rows");
    }
}

void score_rows(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                std::size_t row_count, std::size_t dimensions, float* out, std::size_t stride, cudaStream_t stream)
{
    const std::size_t step = launch_rows(query_count, dimensions);
    for (std::size_t first = 0; first < row_count; first += step) {
        const std::size_t here = std::min(step, row_count - first);
        row_products_kernel<<<dim3(tiles(here), tiles(query_count)), threads, 0, stream>>>(
            {queries,
             query_count,
             {},
             rows + first * dimensions,
             here,
             dimensions,
             norms != nullptr ? norms + first : nullptr,
             norms != nullptr ? -2.0F : -1.0F,
             out + first,
             stride});
        check_launch("score rows");
    }
}

void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out, cudaStream_t stream)
{
    const std::size_t most = std::clamp<std::size_t>((std::size_t{1} << 29) / dimensions, 1, std::size_t{1} << 26);
    for (std::size_t first = 0; first < count; first += most) {
        const std::size_t here = std::min(most, count - first);
        squared_norms_kernel<<<static_cast<unsigned>((here * 32 + threads - 1) / threads), threads, 0, stream>>>(
            rows + first * dimensions, here, dimensions, out + first);
        check_launch("squared norms");
    }
}

}  // namespace pgwarp::cuda
