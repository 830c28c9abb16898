#include "cluster/row_products.h"

#include <algorithm>
#include <cfloat>

#include "device/error.h"
#include "select/key.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int tile = 128;  // of either side; a thread computes 8 x 8
constexpr int depth = 16;
constexpr int threads = 256;
constexpr int pad = 4;
// A block keeps its multiprocessor to its end, and searches wait for it. 256 dimensions take a block about 0.1 ms;
// later launches add further dimensions, in order.
constexpr std::size_t most_depth = 256;
constexpr std::size_t launch_products = std::size_t{1} << 30;  // of all blocks: about 0.1 ms

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
    // The dimensions of this launch. The first is a multiple of `depth`; where it is not 0, sums continue from `out`.
    std::size_t first_dimension = 0;
    std::size_t end_dimension = 0;
    // Where scores are collected, `out` only takes the sums of launches before the last.
    NearLists lists = {};
    std::size_t first_row = 0;
};

constexpr int fetched = depth * tile / threads;

// Fetches a thread's share of dimensions [k, k + depth) of 128 rows: 16 threads read 16 neighbours of one row.
__device__ inline void fetch_tile(const float* rows, std::size_t count, const ResidualBase& base,
                                  std::size_t dimensions, std::size_t first, std::size_t k, float (&values)[fetched])
{
    const std::size_t column = k + threadIdx.x % depth;
#pragma unroll
    for (int i = 0; i < fetched; ++i) {
        const std::size_t row = first + threadIdx.x / depth + i * (threads / depth);
        values[i] = 0;
        if (row >= count || column >= dimensions) continue;
        values[i] = rows[row * dimensions + column];
        if (base.labels != nullptr) values[i] -= base.centroids[base.labels[row] * dimensions + column];
    }
}

// Stores it transposed.
__device__ inline void store_tile(const float (&values)[fetched], float (&shared)[depth][tile + pad])
{
#pragma unroll
    for (int i = 0; i < fetched; ++i)
        shared[threadIdx.x % depth][threadIdx.x / depth + i * (threads / depth)] = values[i];
}

__device__ inline void append(const NearLists& lists, std::size_t query, float score, std::size_t row)
{
    const unsigned at = atomicAdd(lists.counts + query, 1U);
    lists.keys[query * lists.room + at] = make_key(score, static_cast<std::uint32_t>(row));
}

template <bool collects>
__global__ __launch_bounds__(threads, 2) void row_products_kernel(ProductTask task)
{
    __shared__ __align__(16) float left[depth][tile + pad];
    __shared__ __align__(16) float right[depth][tile + pad];
    const std::size_t first_left = std::size_t{blockIdx.y} * tile;
    const std::size_t first_right = std::size_t{blockIdx.x} * tile;
    const int x = threadIdx.x % 16;
    const int y = threadIdx.x / 16;
    const auto row_of = [&](int i) { return first_left + (i / 4) * 64 + y * 4 + i % 4; };
    const auto column_of = [&](int j) { return first_right + (j / 4) * 64 + x * 4 + j % 4; };
    float sums[8][8] = {};
    if (task.first_dimension > 0) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (row_of(i) >= task.left_count || column_of(j) >= task.right_count) continue;
                sums[i][j] = task.out[row_of(i) * task.stride + column_of(j)];
            }
        }
    }
    float next_left[fetched];
    float next_right[fetched];
    const auto fetch = [&](std::size_t k) {
        fetch_tile(task.left, task.left_count, task.base, task.dimensions, first_left, k, next_left);
        fetch_tile(task.right, task.right_count, {}, task.dimensions, first_right, k, next_right);
    };
    fetch(task.first_dimension);
    for (std::size_t k = task.first_dimension; k < task.end_dimension; k += depth) {
        __syncthreads();
        store_tile(next_left, left);
        store_tile(next_right, right);
        __syncthreads();
        if (k + depth < task.end_dimension) fetch(k + depth);
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
    const bool last = task.end_dimension == task.dimensions;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const std::size_t row = row_of(i);
        if (row >= task.left_count) continue;
        const float bound = collects && last ? task.lists.bounds[row] : 0.0F;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const std::size_t column = column_of(j);
            if (column >= task.right_count) continue;
            const float norm = task.norms != nullptr ? task.norms[column] : 0.0F;
            const float value = last ? fmaf(task.factor, sums[i][j], norm) : sums[i][j];
            if (collects && last) {
                // Also in place of NaN.
                const float score = fmaxf(fminf(value, FLT_MAX), -FLT_MAX);
                if (score < bound) append(task.lists, row, score, task.first_row + column);
            } else {
                task.out[row * task.stride + column] = value;
            }
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
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) out[i] = sum;
}

unsigned tiles(std::size_t rows)
{
    return static_cast<unsigned>((rows + tile - 1) / tile);
}

// Dimensions of a launch: equal shares of at most most_depth.
std::size_t launch_depth(std::size_t dimensions)
{
    const std::size_t shares = (dimensions + most_depth - 1) / most_depth;
    return ((dimensions + shares - 1) / shares + depth - 1) / depth * depth;
}

// Blocks of a launch: whole waves of the device with about launch_products.
std::size_t launch_blocks(std::size_t dimensions)
{
    int device = 0;
    int multiprocessors = 0;
    int resident = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "asking for the device");
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, row_products_kernel<false>, threads, 0),
          "asking for the device");
    const std::size_t wave = std::max<std::size_t>(1, static_cast<std::size_t>(multiprocessors) * resident);
    const std::size_t blocks = launch_products / (launch_depth(dimensions) * tile * tile);
    const std::size_t waves = std::max<std::size_t>(1, (blocks + wave / 2) / wave);
    return std::min<std::size_t>(waves * wave, 65535);
}

template <bool collects>
void multiply(ProductTask task, cudaStream_t stream)
{
    const std::size_t share = launch_depth(task.dimensions);
    const dim3 grid(tiles(task.right_count), tiles(task.left_count));
    for (; task.first_dimension < task.dimensions; task.first_dimension = task.end_dimension) {
        task.end_dimension = std::min(task.first_dimension + share, task.dimensions);
        row_products_kernel<collects><<<grid, threads, 0, stream>>>(task);
        check_launch("products of rows");
    }
}

}  // namespace

void rotate_rows(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base,
                 const float* rotation, float* out, cudaStream_t stream)
{
    if (count == 0) return;
    const std::size_t step = std::max<std::size_t>(1, launch_blocks(dimensions) / tiles(dimensions)) * tile;
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        ResidualBase piece = base;
        if (piece.labels != nullptr) piece.labels += first;
        multiply<false>({rows + first * dimensions, here, piece, rotation, dimensions, dimensions, nullptr, 1.0F,
                         out + first * dimensions, dimensions},
                        stream);
    }
}

namespace
{

struct ScoreShape {
    std::size_t queries;
    std::size_t rows;  // of a launch
};

ScoreShape score_shape(std::size_t query_count, std::size_t dimensions)
{
    const std::size_t blocks = launch_blocks(dimensions);
    const std::size_t queries = std::min(query_count, blocks * tile);
    return {queries, std::max<std::size_t>(1, blocks / tiles(queries)) * tile};
}

ProductTask score_task(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                       std::size_t row_count, std::size_t dimensions, float* out, std::size_t stride)
{
    const float factor = norms != nullptr ? -2.0F : -1.0F;
    return {queries, query_count, {}, rows, row_count, dimensions, norms, factor, out, stride};
}

// Calls launch(first query, queries, first row, rows) for each launch.
template <class Launch>
void for_each_launch(const ScoreShape& shape, std::size_t query_count, std::size_t row_count, const Launch& launch)
{
    for (std::size_t query = 0; query < query_count; query += shape.queries)
        for (std::size_t row = 0; row < row_count; row += shape.rows)
            launch(query, std::min(shape.queries, query_count - query), row, std::min(shape.rows, row_count - row));
}

}  // namespace

void score_rows(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                std::size_t row_count, std::size_t dimensions, float* out, std::size_t stride, cudaStream_t stream)
{
    if (query_count == 0 || row_count == 0) return;
    const auto launch = [&](std::size_t query, std::size_t some, std::size_t row, std::size_t here) {
        multiply<false>(
            score_task(queries + query * dimensions, some, rows + row * dimensions,
                       norms != nullptr ? norms + row : nullptr, here, dimensions, out + query * stride + row, stride),
            stream);
    };
    for_each_launch(score_shape(query_count, dimensions), query_count, row_count, launch);
}

std::size_t near_sums(std::size_t query_count, std::size_t dimensions)
{
    if (dimensions <= most_depth || query_count == 0) return 0;
    // Fewer queries may take more sums, as whole tiles of them meet more rows: at most the tiles of all blocks.
    return launch_blocks(dimensions) * tile * tile;
}

void collect_near(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                  std::size_t row_count, std::size_t first_row, std::size_t dimensions, const NearLists& lists,
                  float* sums, cudaStream_t stream)
{
    if (query_count == 0 || row_count == 0) return;
    const ScoreShape shape = score_shape(query_count, dimensions);
    const auto launch = [&](std::size_t query, std::size_t some, std::size_t row, std::size_t here) {
        ProductTask task = score_task(queries + query * dimensions, some, rows + row * dimensions,
                                      norms != nullptr ? norms + row : nullptr, here, dimensions, sums, shape.rows);
        task.lists = {lists.keys + query * lists.room, lists.room, lists.counts + query, lists.bounds + query};
        task.first_row = first_row + row;
        multiply<true>(task, stream);
    };
    for_each_launch(shape, query_count, row_count, launch);
}

void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out, cudaStream_t stream)
{
    // About 0.15 ms a launch, by memory traffic or by warps.
    const std::size_t most = std::clamp<std::size_t>((std::size_t{1} << 27) / dimensions, 1, std::size_t{1} << 22);
    for (std::size_t first = 0; first < count; first += most) {
        const std::size_t here = std::min(most, count - first);
        squared_norms_kernel<<<static_cast<unsigned>((here * 32 + threads - 1) / threads), threads, 0, stream>>>(
            rows + first * dimensions, here, dimensions, out + first);
        check_launch("squared norms");
    }
}

}  // namespace pgwarp::cuda
