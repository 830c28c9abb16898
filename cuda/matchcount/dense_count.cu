// The search of the dense form: a sample of the rows gives each query a threshold that a few times k rows of all reach;
// those are passed and selected. Where a threshold misled, the query is counted again without one.
#include "matchcount/dense_count.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "device/carver.h"
#include "device/error.h"
#include "matchcount/dense_parts.h"
#include "matchcount/dense_tiles.h"
#include "select/key.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

// Fewer queries than these are counted by parts.
constexpr std::uint32_t few_queries = 33;
constexpr std::uint32_t most_sampled_rows = 16384;

struct SamplePlan {
    std::uint32_t tiles;
    std::uint32_t step;
    std::uint32_t rank;  // the threshold is the count of this rank in the sample
};

// Of a sample of S of N rows, the k-th largest count of all has an expected rank of k * S / N. Six standard deviations
// above it, fewer than k rows reach the threshold in about one query of 10^9.
SamplePlan sample_plan(std::uint32_t rows, std::uint32_t k)
{
    const std::uint32_t step = std::max(1U, (rows + most_sampled_rows - 1) / most_sampled_rows);
    const std::uint32_t sampled = (rows + step - 1) / step;
    const double expected = static_cast<double>(k) / step;
    const double rank = step == 1 ? k : expected + 6 * std::sqrt(expected) + 8;
    return {(sampled + tile_rows - 1) / tile_rows, step, static_cast<std::uint32_t>(std::min(rank, 4e9))};
}

bool by_tiles(const DenseRows& rows, std::uint32_t queries, const Context& context)
{
    return queries >= few_queries && tiles_fit(rows, context);
}

struct Layout {
    DenseCodes codes;
    DenseSample sample;
    std::uint32_t* thresholds;  // [padded]
    std::uint32_t* passed;      // [queries]
    std::uint32_t* again;       // [queries]: the query is counted again
    PassedRows rows;
    std::byte* selection;
};

Layout lay_out(const DenseRows& rows, std::uint32_t queries, std::uint32_t k, const Context& context, Carver& carver)
{
    Layout layout{};
    layout.codes.queries = queries;
    layout.codes.padded = (queries + tile_queries - 1) / tile_queries * tile_queries;
    layout.rows.queries = queries;
    const bool tiles = by_tiles(rows, queries, context);
    layout.rows.places = dense_places(dense_parts(rows, queries, !tiles, context), k);
    const SamplePlan plan = sample_plan(rows.rows, k);
    if (tiles) {
        layout.rows.places =
            std::max(layout.rows.places, std::min(rows.rows, std::max(2048U, 4 * plan.rank * plan.step)));
        layout.codes.words = carver.take<uint4>(std::size_t{layout.codes.padded} * function_chunks(rows.functions));
        layout.sample = {plan.tiles, plan.step,
                         carver.take<std::uint32_t>(std::size_t{plan.tiles} * counter_planes(rows.functions) *
                                                    (tile_rows / 32) * layout.codes.padded)};
    }
    layout.thresholds = carver.take<std::uint32_t>(layout.codes.padded);
    layout.passed = carver.take<std::uint32_t>(queries);
    layout.again = carver.take<std::uint32_t>(queries);
    const std::size_t places = std::size_t{queries} * layout.rows.places;
    layout.rows.scores = carver.take<float>(places);
    layout.rows.rows = carver.take<std::uint32_t>(places);
    layout.selection = carver.take<std::byte>(best_counts_workspace_bytes(queries, layout.rows.places, k));
    return layout;
}

__global__ void set_kernel(std::uint32_t* values, std::uint32_t count, std::uint32_t value)
{
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = value;
}

__global__ void unused_places_kernel(float* scores, std::uint32_t* rows, std::size_t count)
{
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x) {
        scores[i] = INFINITY;
        rows[i] = padding_id;
    }
}

constexpr int sample_queries = 32;
constexpr int sample_warps = 16;

// thresholds[query] = the count of rank `rank` in the sample, or 1. The bits of the count are found from the highest
// on; a warp takes some of the tiles, a lane a query.
__global__ __launch_bounds__(sample_queries* sample_warps) void thresholds_kernel(
    DenseSample sample, std::uint32_t planes, std::uint32_t padded, std::uint32_t rank, std::uint32_t* thresholds)
{
    __shared__ std::uint32_t sums[sample_queries];
    constexpr std::uint32_t words = tile_rows / 32;
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t query = blockIdx.x * sample_queries + lane;
    std::uint32_t threshold = 0;
    for (std::uint32_t bit = planes; bit-- > 0;) {
        const std::uint32_t tried = threshold | 1U << bit;
        std::uint32_t rows = 0;
        for (std::uint32_t tile = threadIdx.x / 32; tile < sample.tiles; tile += sample_warps) {
            std::uint32_t reached[words] = {~0U, ~0U, ~0U, ~0U};
            for (std::uint32_t p = 0; p < planes; ++p) {
                const std::uint32_t clear = (tried >> p & 1) - 1;
#pragma unroll
                for (std::uint32_t w = 0; w < words; ++w) {
                    const std::uint32_t plane =
                        sample.planes[((std::size_t{tile} * planes + p) * words + w) * padded + query];
                    reached[w] = (reached[w] & plane) | (clear & (reached[w] | plane));
                }
            }
#pragma unroll
            for (std::uint32_t w = 0; w < words; ++w) rows += __popc(reached[w]);
        }
        if (threadIdx.x < sample_queries) sums[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&sums[lane], rows);
        __syncthreads();
        if (sums[lane] >= rank) threshold = tried;
        __syncthreads();
    }
    if (threadIdx.x < sample_queries) thresholds[query] = max(threshold, 1U);
}

// Marks the queries that are counted again, and opens their thresholds and places. A block a query.
__global__ void again_kernel(Layout layout, std::uint32_t k)
{
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t found = layout.passed[query];
    const bool again = found > layout.rows.places || (found < k && layout.thresholds[query] > 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        layout.again[query] = again ? 1 : 0;
        if (again) layout.thresholds[query] = 1;
    }
    float* scores = layout.rows.scores + std::size_t{query} * layout.rows.places;
    for (std::uint32_t i = threadIdx.x; again && i < layout.rows.places; i += blockDim.x) scores[i] = INFINITY;
}

constexpr int transposed = 64;  // rows and functions of a block

__global__ __launch_bounds__(256) void transpose_kernel(const std::uint8_t* signatures, std::uint32_t rows,
                                                        std::uint32_t functions, std::uint8_t* values,
                                                        std::size_t stride)
{
    __shared__ std::uint8_t tile[transposed][transposed + 4];
    const std::uint32_t first_row = blockIdx.x * transposed;
    const std::uint32_t first_function = blockIdx.y * transposed;
    for (std::uint32_t i = threadIdx.x; i < transposed * transposed; i += blockDim.x) {
        const std::uint32_t row = first_row + i / transposed;
        const std::uint32_t f = first_function + i % transposed;
        if (row < rows && f < functions)
            tile[i / transposed][i % transposed] = signatures[std::size_t{row} * functions + f];
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < transposed * transposed; i += blockDim.x) {
        const std::uint32_t f = first_function + i / transposed;
        const std::uint32_t row = first_row + i % transposed;
        if (row < rows && f < functions) values[f * stride + row] = tile[i % transposed][i / transposed];
    }
}

void check_contract(const DenseRows& rows, std::uint32_t k)
{
    if (k == 0 || rows.functions == 0 || rows.functions > most_dense_functions || rows.universe == 0 ||
        rows.universe > most_dense_values || rows.stride < rows.rows || rows.stride % 16 != 0)
        throw std::invalid_argument("a search of the dense form outside its contract");
}

void count_by_thresholds(const DenseRows& rows, const DenseQueries& queries, std::uint32_t k, const Layout& layout,
                         Context& context, cudaStream_t stream)
{
    const SamplePlan plan = sample_plan(rows.rows, k);
    const std::size_t places = std::size_t{queries.count} * layout.rows.places;
    unused_places_kernel<<<static_cast<unsigned>(std::min<std::size_t>(places / 1024 + 1, 4096)), 256, 0, stream>>>(
        layout.rows.scores, layout.rows.rows, places);
    check_launch("unused places");
    write_dense_codes(rows, queries, layout.codes, stream);
    count_sample(rows, queries.dead, layout.codes, layout.sample, context, stream);
    thresholds_kernel<<<layout.codes.padded / sample_queries, sample_queries * sample_warps, 0, stream>>>(
        layout.sample, counter_planes(rows.functions), layout.codes.padded, plan.rank, layout.thresholds);
    check_launch("thresholds of a sample");
    check(cudaMemsetAsync(layout.passed, 0, queries.count * sizeof(std::uint32_t), stream), "counting rows");
    count_tiles(rows, queries.dead, layout.codes,
                {layout.rows.places, layout.thresholds, layout.passed, layout.rows.scores, layout.rows.rows}, context,
                stream);
    again_kernel<<<queries.count, 256, 0, stream>>>(layout, k);
    check_launch("queries to count again");
    count_dense_parts(rows, queries, layout.again, k, layout.thresholds, layout.rows, context, stream);
}

}  // namespace

void transpose_signatures(const std::uint8_t* signatures, std::uint32_t rows, std::uint32_t functions,
                          std::uint8_t* values, std::size_t stride, std::uint32_t first, cudaStream_t stream)
{
    if (rows == 0) return;
    transpose_kernel<<<dim3((rows + transposed - 1) / transposed, (functions + transposed - 1) / transposed), 256, 0,
                       stream>>>(signatures, rows, functions, values + first, stride);
    check_launch("transposing signatures");
}

std::size_t top_dense_counts_workspace_bytes(const DenseRows& rows, std::uint32_t queries, std::uint32_t k,
                                             const Context& context)
{
    check_contract(rows, k);
    return carved_bytes([&](Carver& carver) { (void)lay_out(rows, queries, k, context, carver); });
}

void top_dense_counts(const DenseRows& rows, const DenseQueries& queries, std::uint32_t k, const CountedRows& out,
                      std::byte* workspace, Context& context, cudaStream_t stream)
{
    check_contract(rows, k);
    if (queries.count == 0) return;
    Carver carver(workspace);
    const Layout layout = lay_out(rows, queries.count, k, context, carver);
    if (by_tiles(rows, queries.count, context)) {
        count_by_thresholds(rows, queries, k, layout, context, stream);
    } else {
        set_kernel<<<(queries.count + 255) / 256, 256, 0, stream>>>(layout.thresholds, queries.count, 1);
        check_launch("thresholds");
        count_dense_parts(rows, queries, nullptr, k, layout.thresholds, layout.rows, context, stream);
    }
    best_counts(layout.rows, {true, rows.rows, nullptr, queries.dead}, k, out, layout.selection, stream);
}

}  // namespace pgwarp::cuda::matchcount
