// The matrix kernel for tensor cores from sm_75 on: blocks of four warps, 64 queries by 128 rows, 64 dimensions at a
// time in shared memory. Copies of the next dimensions run beside the products, where the device has asynchronous
// copies.
#include <algorithm>

#include "device/error.h"
#include "distance/tile_epilogue.cuh"
#include "rows/matrix_tile.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr std::uint32_t block_queries = 64;
constexpr unsigned block_threads = 128;
constexpr std::uint32_t query_bytes = block_queries * rows::tile_depth * sizeof(__half);
constexpr std::uint32_t stage_bytes = query_bytes + tile_rows * rows::tile_depth * sizeof(__half);
static_assert(tile_rows == rows::strip_columns && thread_products == rows::strip_sums);
static_assert(dimension_multiple % rows::tile_depth == 0 && tile_queries % block_queries == 0);

struct PortableArguments {
    Proposals out;
    const __half* queries;
    const __half* rows;
    const float* penalties;
    const float* factors;
    std::uint32_t dimensions;
    std::uint32_t first_tile;
    std::uint32_t tiles;
    AddedBytes added;
    RowMasks masks;
};

// Dimensions [d, d + tile_depth) of `count` vectors into a tile.
__device__ void load_tile(const __half* from, std::uint32_t count, std::uint32_t dimensions, unsigned char* to)
{
    for (std::uint32_t i = threadIdx.x; i < count * 8; i += block_threads) {
        rows::copy_piece(to + rows::tile_offset(i / 8, i % 8), from + std::size_t{i / 8} * dimensions + i % 8 * 8,
                         true);
    }
}

__global__ __launch_bounds__(block_threads, 3) void portable_tiles(const PortableArguments arguments)
{
    __shared__ __align__(1024) unsigned char ring[rows::ring_stages * stage_bytes];
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t warp_query = threadIdx.x / 32 * 16;
    const std::uint32_t slot = blockIdx.x * block_queries + warp_query + lane / 4;
    const float2 factor{arguments.factors[slot], arguments.factors[slot + 8]};
    const bool maxima = arguments.out.maxima != nullptr;
    float2 threshold{};
    if (!maxima) threshold = {arguments.out.thresholds[slot], arguments.out.thresholds[slot + 8]};
    const __half* first_query = arguments.queries + std::size_t{blockIdx.x} * block_queries * arguments.dimensions;
    const std::uint32_t depths = arguments.dimensions / rows::tile_depth;
    const std::uint32_t steps = (arguments.tiles - blockIdx.y + gridDim.y - 1) / gridDim.y * depths;
    const auto tile_of = [&](std::uint32_t step) { return blockIdx.y + step / depths * gridDim.y; };
    const auto load = [&](std::uint32_t step) {
        if (step < steps) {
            const std::uint32_t d = step % depths * rows::tile_depth;
            const std::size_t position = std::size_t{arguments.first_tile + tile_of(step)} * tile_rows;
            unsigned char* stage = ring + step % rows::ring_stages * stage_bytes;
            load_tile(first_query + d, block_queries, arguments.dimensions, stage);
            load_tile(arguments.rows + position * arguments.dimensions + d, tile_rows, arguments.dimensions,
                      stage + query_bytes);
        }
        rows::commit_copies();
    };
    float products[thread_products] = {};
    if (rows::ring_stages > 1) load(0);
    for (std::uint32_t step = 0; step < steps; ++step) {
        if (rows::ring_stages == 1) {
            __syncthreads();
            load(step);
        }
        rows::wait_for_copies<0>();
        __syncthreads();
        if (rows::ring_stages > 1) load(step + 1);
        const unsigned char* stage = ring + step % rows::ring_stages * stage_bytes;
        rows::multiply_strip(products, stage, static_cast<int>(warp_query), stage + query_bytes);
        if ((step + 1) % depths != 0) continue;
        const std::uint32_t tile = tile_of(step);
        const std::uint32_t position = (arguments.first_tile + tile) * tile_rows;
        const bool masked = arguments.masks.words != nullptr;
        float2 largest;
        if (masked) {
            const std::uint32_t* words = arguments.masks.words + 4 * tile + lane % 4;
            const std::size_t width = arguments.out.maxima_width;
            const uint2 word{words[arguments.masks.of_slot[slot] * width],
                             words[arguments.masks.of_slot[slot + 8] * width]};
            largest = least_admitted(products, factor, arguments.penalties + position, word);
        } else {
            largest = make_scores(products, factor, arguments.penalties + position);
        }
        if (arguments.added.values != nullptr) largest = add_tile_bytes(products, arguments.added, slot, tile);
        if (maxima) {
            float* out = arguments.out.maxima + std::size_t{slot} * arguments.out.maxima_width + 4 * tile + lane % 4;
            out[0] = largest.x;
            out[std::size_t{8} * arguments.out.maxima_width] = largest.y;
        } else if (__any_sync(~0U, largest.x > threshold.x || largest.y > threshold.y)) {
            emit_above(products, threshold, [&](bool hit, std::uint32_t second, std::uint32_t column, float score) {
                if (hit) append(arguments.out, slot + 8 * second, position + column, score);
            });
        }
#pragma unroll
        for (float& product : products) product = 0;
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
    arguments.added = job.added;
    arguments.masks = job.masks;
    const std::uint32_t query_blocks = (job.queries.count + block_queries - 1) / block_queries;
    const std::uint32_t begin = job.range.begin / tile_rows;
    const std::uint32_t end = (job.range.end + tile_rows - 1) / tile_rows;
    const auto launch_tiles = static_cast<std::uint32_t>(
        std::max(1.0, launch_products / (double{1} * query_blocks * block_queries * arguments.dimensions * tile_rows)));
    const auto blocks = static_cast<std::uint32_t>(context.multiprocessors()) * 8;
    for (std::uint32_t tile = begin; tile < end; tile += launch_tiles) {
        arguments.first_tile = tile;
        arguments.tiles = std::min(launch_tiles, end - tile);
        if (job.out.maxima != nullptr) arguments.out.maxima = job.out.maxima + std::size_t{tile - begin} * 4;
        if (job.added.values != nullptr)
            arguments.added.values = job.added.values + std::size_t{tile - begin} * tile_rows;
        if (job.masks.words != nullptr) arguments.masks.words = job.masks.words + std::size_t{tile - begin} * 4;
        const dim3 grid(query_blocks, std::clamp(blocks / query_blocks, 1U, arguments.tiles));
        portable_tiles<<<grid, block_threads, 0, stream>>>(arguments);
        check_launch("portable tiles");
    }
}

}  // namespace pgwarp::cuda
