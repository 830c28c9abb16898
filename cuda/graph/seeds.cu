#include "graph/seeds.h"

#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"
#include "graph/row_scores.cuh"
#include "ivfadc/scan.h"
#include "select/select.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr unsigned threads = 256;

SelectShape select_shape(const SearchShape& shape, std::uint32_t count)
{
    return {count, static_cast<std::int64_t>(shape.seeds), static_cast<std::int64_t>(seed_stride(shape)),
            static_cast<std::int64_t>(shape.starts - 1)};
}

__global__ void starts_of_columns(const std::uint32_t* columns, const std::uint32_t* seed_rows, std::uint32_t count,
                                  std::uint32_t starts, std::uint32_t* out)
{
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= count * starts) return;
    const std::uint32_t query = i / starts;
    const std::uint32_t place = i % starts;
    if (place + 1 == starts) {
        out[i] = seed_rows[0];
        return;
    }
    const std::uint32_t column = columns[query * (starts - 1) + place];
    out[i] = column == 0xffffffff ? no_row_here : seed_rows[column];
}

// Blocks y: queries.
__global__ void score_bits(BitView bits, const std::uint32_t* query_bits, std::uint32_t seeds, std::size_t stride,
                           float* scores)
{
    const std::uint32_t seed = blockIdx.x * threads + threadIdx.x;
    if (seed >= seeds) return;
    const std::uint32_t* query = query_bits + static_cast<std::size_t>(blockIdx.y) * bits.words;
    const std::uint32_t* row = bits.seeds + static_cast<std::size_t>(seed) * bits.words;
    scores[blockIdx.y * stride + seed] = static_cast<float>(BitScores::differing(row, query, bits.words));
}

// Eight lanes a bit, a block of 256 threads a word of a row.
__global__ __launch_bounds__(threads) void project_kernel(BitView bits, const float* rows, std::uint32_t dimensions,
                                                          std::uint32_t* out)
{
    const std::uint32_t row = blockIdx.x / bits.words;
    const std::uint32_t word = blockIdx.x % bits.words;
    const std::uint32_t bit = threadIdx.x / canonical_lanes;
    const float* direction = bits.projection + (static_cast<std::size_t>(word) * 32 + bit) * (dimensions + 1);
    const double product =
        cuda::detail::canonical_dot(direction, rows + static_cast<std::size_t>(row) * dimensions, dimensions);
    // Four bits a warp, eight warps.
    __shared__ std::uint32_t bytes;
    if (threadIdx.x == 0) bytes = 0;
    __syncthreads();
    const bool set = product > static_cast<double>(direction[dimensions]);
    if (threadIdx.x % canonical_lanes == 0 && set) atomicOr(&bytes, 1U << bit);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = bytes;
}

}  // namespace

std::size_t seed_stride(const SearchShape& shape)
{
    return ivfadc::whole_groups(shape.seeds);
}

std::size_t select_bytes(const SearchShape& shape, std::uint32_t count)
{
    return select_workspace_bytes(select_shape(shape, count));
}

void choose_starts(const GraphView& view, const SearchShape& shape, const ivfadc::QueryView& queries,
                   const std::uint32_t* query_bits, std::uint32_t count, const SeedSpace& space,
                   std::uint32_t shared_bytes, std::uint32_t* starts, cudaStream_t stream)
{
    if (count == 0) return;
    const std::size_t stride = seed_stride(shape);
    if (view.has_bits()) {
        constexpr std::uint32_t most_blocks = 65535;
        for (std::uint32_t first = 0; first < count; first += most_blocks) {
            const dim3 blocks((shape.seeds + threads - 1) / threads, std::min(most_blocks, count - first));
            score_bits<<<blocks, threads, 0, stream>>>(view.bits,
                                                       query_bits + static_cast<std::size_t>(first) * view.bits.words,
                                                       shape.seeds, stride, space.scores + first * stride);
            check_launch("comparing seeds");
        }
    } else {
        // Any prefix of the seeds is spread like the whole.
        ivfadc::MirrorView some = view.vectors;
        some.lists = shape.seeds;
        ivfadc::scan_centroids(some, queries, count, {space.scores, stride}, shared_bytes, stream);
    }
    select_smallest(space.scores, select_shape(shape, count), space.values, space.columns, space.select, stream);
    starts_of_columns<<<(count * shape.starts + threads - 1) / threads, threads, 0, stream>>>(
        space.columns, view.seed_rows, count, shape.starts, starts);
    check_launch("choosing starts");
}

void project(const BitView& bits, const float* queries, std::uint32_t dimensions, std::uint32_t count,
             std::uint32_t* out, cudaStream_t stream)
{
    if (count == 0) return;
    project_kernel<<<count * bits.words, threads, 0, stream>>>(bits, queries, dimensions, out);
    check_launch("projecting");
}

}  // namespace pgwarp::cuda::graph
