// Proposals by L1 distances, which have no matrix form: a subtraction and an addition of the absolute value for every
// pair and dimension, in registers, 128 queries by 128 rows a block, 8 by 8 a thread.
#include <algorithm>

#include "device/error.h"
#include "distance/tile_epilogue.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t block_queries = 128;
constexpr std::uint32_t depth = 16;  // dimensions in shared memory at a time
constexpr std::uint32_t stride = 128 + 4;
constexpr unsigned block_threads = 256;

struct L1Arguments {
    Proposals out;
    RowOrder order;
    const float* const* queries;
    const float* vectors;
    const float* penalties;
    std::uint32_t dimensions;
    std::uint32_t first_block;  // of queries
    std::uint32_t first_tile;
    std::uint32_t tiles;
    bool aligned;
};

// Eight elements of one vector: threads 2 i and 2 i + 1 share vector i.
struct Fetched {
    float4 low;
    float4 high;
};

__device__ float4 fetch(const float* vector, std::uint32_t d, std::uint32_t dimensions, bool aligned)
{
    float4 value{0, 0, 0, 0};
    if (vector == nullptr || d >= dimensions) return value;
    if (aligned) return *reinterpret_cast<const float4*>(vector + d);
    value.x = vector[d];
    if (d + 1 < dimensions) value.y = vector[d + 1];
    if (d + 2 < dimensions) value.z = vector[d + 2];
    if (d + 3 < dimensions) value.w = vector[d + 3];
    return value;
}

__device__ Fetched fetch_both(const float* vector, std::uint32_t d, const L1Arguments& arguments)
{
    return {fetch(vector, d, arguments.dimensions, arguments.aligned),
            fetch(vector, d + 4, arguments.dimensions, arguments.aligned)};
}

// Stores the eight elements, dimension-major.
__device__ void put(float* shared, const Fetched& value)
{
    float* to = shared + threadIdx.x % 2 * 8 * stride + threadIdx.x / 2;
    to[0] = value.low.x;
    to[stride] = value.low.y;
    to[2 * stride] = value.low.z;
    to[3 * stride] = value.low.w;
    to[4 * stride] = value.high.x;
    to[5 * stride] = value.high.y;
    to[6 * stride] = value.high.z;
    to[7 * stride] = value.high.w;
}

// The values of eight of 128 vectors: 4 i to 4 i + 3, and the same 64 further on.
__device__ void read_eight(const float* shared, std::uint32_t i, float (&values)[8])
{
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(shared + 4 * i);
    *reinterpret_cast<float4*>(values + 4) = *reinterpret_cast<const float4*>(shared + 64 + 4 * i);
}

__device__ std::uint32_t index_of(std::uint32_t i, std::uint32_t thread)
{
    return i / 4 * 64 + 4 * thread + i % 4;
}

struct SharedBlocks {
    float queries[2][depth * stride];
    float rows[2][depth * stride];
};

__device__ void sum_tile(const L1Arguments& arguments, const float* query, const float* row, SharedBlocks& shared,
                         float (&sums)[8][8])
{
    const std::uint32_t own = threadIdx.x % 2 * 8;
    Fetched next_query = fetch_both(query, own, arguments);
    Fetched next_row = fetch_both(row, own, arguments);
    std::uint32_t turn = 0;
    for (std::uint32_t d = 0; d < arguments.dimensions; d += depth) {
        put(shared.queries[turn], next_query);
        put(shared.rows[turn], next_row);
        __syncthreads();
        if (d + depth < arguments.dimensions) {
            next_query = fetch_both(query, d + depth + own, arguments);
            next_row = fetch_both(row, d + depth + own, arguments);
        }
#pragma unroll
        for (std::uint32_t k = 0; k < depth; ++k) {
            float left[8];
            float right[8];
            read_eight(shared.queries[turn] + k * stride, threadIdx.x / 16, left);
            read_eight(shared.rows[turn] + k * stride, threadIdx.x % 16, right);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j) sums[i][j] += fabsf(left[i] - right[j]);
            }
        }
        turn ^= 1;
    }
    __syncthreads();
}

__device__ void write_maxima(const L1Arguments& arguments, const float (&sums)[8][8], const float (&penalties)[8],
                             std::uint32_t tile)
{
    for (std::uint32_t i = 0; i < 8; ++i) {
        float largest = -INFINITY;
        for (int j = 0; j < 8; ++j) largest = fmaxf(largest, -sums[i][j] - penalties[j]);
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, 2));
        if (threadIdx.x % 4 != 0) continue;
        const std::uint32_t slot = (arguments.first_block + blockIdx.x) * block_queries + index_of(i, threadIdx.x / 16);
        arguments.out.maxima[std::size_t{slot} * arguments.out.maxima_width + 4 * tile + threadIdx.x % 16 / 4] =
            largest;
    }
}

__global__ __launch_bounds__(block_threads, 2) void l1_tiles(const L1Arguments arguments)
{
    __shared__ __align__(16) SharedBlocks shared;
    __shared__ float thresholds[block_queries];
    const std::uint32_t first_slot = (arguments.first_block + blockIdx.x) * block_queries;
    const bool maxima = arguments.out.maxima != nullptr;
    if (threadIdx.x < block_queries && !maxima) {
        thresholds[threadIdx.x] = arguments.out.thresholds[first_slot + threadIdx.x];
    }
    const float* query = arguments.queries[first_slot + threadIdx.x / 2];
    for (std::uint32_t tile = blockIdx.y; tile < arguments.tiles; tile += gridDim.y) {
        const std::uint32_t position = (arguments.first_tile + tile) * tile_rows;
        const std::uint32_t row = arguments.order.row_of(position + threadIdx.x / 2);
        const float* vector =
            row < arguments.order.rows ? arguments.vectors + std::size_t{row} * arguments.dimensions : nullptr;
        float sums[8][8] = {};
        sum_tile(arguments, query, vector, shared, sums);
        float penalties[8];
        read_eight(arguments.penalties + position, threadIdx.x % 16, penalties);
        if (maxima) {
            write_maxima(arguments, sums, penalties, tile);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const std::uint32_t local = index_of(i, threadIdx.x / 16);
            const float threshold = thresholds[local];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const float score = -sums[i][j] - penalties[j];
                if (score > threshold) {
                    append(arguments.out, first_slot + local, position + index_of(j, threadIdx.x % 16), score);
                }
            }
        }
    }
}

}  // namespace

void propose_by_l1_tiles(Context& context, const ProposalJob& job, cudaStream_t stream)
{
    constexpr double launch_terms = 0.02e12;  // absolute differences that take less than 2 ms
    L1Arguments arguments{};
    arguments.out = job.out;
    arguments.order = job.rows->order;
    arguments.queries = job.queries.floats;
    arguments.vectors = job.vectors;
    arguments.penalties = job.penalties;
    arguments.dimensions = job.rows->dimensions;
    arguments.aligned = arguments.dimensions % 4 == 0;
    const std::uint32_t all_blocks = job.queries.padded / block_queries;
    const std::uint32_t begin = job.range.begin / tile_rows;
    const std::uint32_t end = (job.range.end + tile_rows - 1) / tile_rows;
    const double block_terms = double{1} * block_queries * job.rows->padded_dimensions * tile_rows;
    const std::uint32_t query_blocks =
        std::min(all_blocks, static_cast<std::uint32_t>(std::max(1.0, launch_terms / block_terms)));
    const auto resident = static_cast<std::uint32_t>(context.multiprocessors()) * 2;
    // Whole waves of blocks, each with one tile or several.
    auto launch_tiles = static_cast<std::uint32_t>(std::max(1.0, launch_terms / (block_terms * query_blocks)));
    if (launch_tiles * query_blocks > resident) {
        launch_tiles = std::max(1U, launch_tiles * query_blocks / resident * resident / query_blocks);
    }
    for (std::uint32_t tile = begin; tile < end; tile += launch_tiles) {
        arguments.first_tile = tile;
        arguments.tiles = std::min(launch_tiles, end - tile);
        if (job.out.maxima != nullptr) arguments.out.maxima = job.out.maxima + std::size_t{tile - begin} * 4;
        for (std::uint32_t block = 0; block < all_blocks; block += query_blocks) {
            arguments.first_block = block;
            const dim3 grid(std::min(query_blocks, all_blocks - block), arguments.tiles);
            l1_tiles<<<grid, block_threads, 0, stream>>>(arguments);
            check_launch("L1 tiles");
        }
    }
}

}  // namespace pgwarp::cuda
