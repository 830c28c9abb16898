// The matrix kernel for tensor cores from sm_75 on: blocks of eight warps, 128 queries by 128 rows, blocks of 32
// dimensions in shared memory.
#include <algorithm>

#include "device/error.h"
#include "distance/tile_epilogue.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t block_queries = 128;
constexpr std::uint32_t block_halves = 32;
constexpr std::uint32_t stride = block_halves + 8;  // rows are 20 words apart, so that banks do not conflict
constexpr unsigned block_threads = 256;

struct PortableArguments {
    Proposals out;
    const __half* queries;
    const __half* rows;
    const float* penalties;
    const float* factors;
    std::uint32_t dimensions;
    std::uint32_t first_tile;
    std::uint32_t tiles;
};

// d += a b^T, 16 x 8 x 8.
__device__ void multiply(float* d, std::uint32_t a0, std::uint32_t a1, std::uint32_t b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
}

// 128 rows of block_halves halves into shared memory.
__device__ void load_block(const __half* from, std::uint32_t dimensions, __half* to)
{
    for (std::uint32_t i = threadIdx.x; i < 128 * block_halves / 8; i += block_threads) {
        const std::uint32_t row = i / (block_halves / 8);
        const std::uint32_t piece = i % (block_halves / 8);
        *reinterpret_cast<uint4*>(to + row * stride + piece * 8) =
            *reinterpret_cast<const uint4*>(from + std::size_t{row} * dimensions + piece * 8);
    }
}

__device__ std::uint32_t pair_at(const __half* halves)
{
    return *reinterpret_cast<const std::uint32_t*>(halves);
}

__global__ __launch_bounds__(block_threads) void portable_tiles(const PortableArguments arguments)
{
    __shared__ __align__(16) __half queries[block_queries * stride];
    __shared__ __align__(16) __half rows[tile_rows * stride];
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t query = threadIdx.x / 32 * 16 + lane / 4;
    const std::uint32_t slot = blockIdx.x * block_queries + query;
    const float2 factor{arguments.factors[slot], arguments.factors[slot + 8]};
    const bool maxima = arguments.out.maxima != nullptr;
    float2 threshold{};
    if (!maxima) threshold = {arguments.out.thresholds[slot], arguments.out.thresholds[slot + 8]};
    const __half* first_query = arguments.queries + std::size_t{blockIdx.x} * block_queries * arguments.dimensions;
    for (std::uint32_t tile = blockIdx.y; tile < arguments.tiles; tile += gridDim.y) {
        const std::uint32_t position = (arguments.first_tile + tile) * tile_rows;
        float products[thread_products] = {};
        for (std::uint32_t d = 0; d < arguments.dimensions; d += block_halves) {
            __syncthreads();
            load_block(first_query + d, arguments.dimensions, queries);
            load_block(arguments.rows + std::size_t{position} * arguments.dimensions + d, arguments.dimensions, rows);
            __syncthreads();
#pragma unroll
            for (std::uint32_t k = 0; k < block_halves; k += 8) {
                const std::uint32_t at = k + 2 * (lane % 4);
                const std::uint32_t a0 = pair_at(queries + query * stride + at);
                const std::uint32_t a1 = pair_at(queries + (query + 8) * stride + at);
#pragma unroll
                for (std::uint32_t j = 0; j < tile_rows / 8; ++j) {
                    multiply(products + 4 * j, a0, a1, pair_at(rows + (8 * j + lane / 4) * stride + at));
                }
            }
        }
        const float2 largest = make_scores(products, factor, arguments.penalties + position);
        if (maxima) {
            float* out = arguments.out.maxima + std::size_t{slot} * arguments.out.maxima_width + 4 * tile + lane % 4;
            out[0] = largest.x;
            out[std::size_t{8} * arguments.out.maxima_width] = largest.y;
        } else if (__any_sync(~0U, largest.x > threshold.x || largest.y > threshold.y)) {
            emit_above(products, threshold, [&](bool hit, std::uint32_t second, std::uint32_t column, float score) {
                if (hit) append(arguments.out, slot + 8 * second, position + column, score);
            });
        }
    }
}

}  // namespace

void propose_portably(Context& context, const ProposalJob& job, cudaStream_t stream)
{
    constexpr double launch_products = 0.04e12;  // multiply-adds that take less than 2 ms on a small card
    PortableArguments arguments{};
    arguments.out = job.out;
    arguments.queries = job.queries.halves;
    arguments.rows = job.rows->halves.data();
    arguments.penalties = job.penalties;
    arguments.factors = job.queries.factors;
    arguments.dimensions = job.rows->padded_dimensions;
    const std::uint32_t query_blocks = job.queries.padded / block_queries;
    const std::uint32_t begin = job.range.begin / tile_rows;
    const std::uint32_t end = (job.range.end + tile_rows - 1) / tile_rows;
    const auto launch_tiles = static_cast<std::uint32_t>(
        std::max(1.0, launch_products / (double{1} * job.queries.padded * arguments.dimensions * tile_rows)));
    const auto blocks = static_cast<std::uint32_t>(context.multiprocessors()) * 8;
    for (std::uint32_t tile = begin; tile < end; tile += launch_tiles) {
        arguments.first_tile = tile;
        arguments.tiles = std::min(launch_tiles, end - tile);
        if (job.out.maxima != nullptr) arguments.out.maxima = job.out.maxima + std::size_t{tile - begin} * 4;
        const dim3 grid(query_blocks, std::clamp(blocks / query_blocks, 1U, arguments.tiles));
        portable_tiles<<<grid, block_threads, 0, stream>>>(arguments);
        check_launch("portable tiles");
    }
}

}  // namespace pgwarp::cuda
