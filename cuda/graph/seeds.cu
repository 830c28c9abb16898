#include "graph/seeds.h"

#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"
#include "rows/table_scan.h"
#include "select/select.h"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr unsigned threads = 256;

SelectShape select_shape(const LaunchConfig& shape, std::uint32_t count)
{
    return {count, static_cast<std::int64_t>(shape.seeds), static_cast<std::int64_t>(seed_stride(shape)),
            static_cast<std::int64_t>(shape.offered)};
}

__global__ void starts_of_columns(const std::uint32_t* columns, const std::uint32_t* seed_rows, std::uint32_t count,
                                  std::uint32_t* out)
{
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i < count) out[i] = columns[i] == 0xffffffff ? no_row_here : seed_rows[columns[i]];
}

// Eight lanes compute a bit, a block of 256 threads a word of a row.
__global__ __launch_bounds__(threads) void project_kernel(BitView bits, const float* rows, std::uint32_t dimensions,
                                                          std::uint32_t* out)
{
    const std::uint32_t row = blockIdx.x / bits.words;
    const std::uint32_t word = blockIdx.x % bits.words;
    const std::uint32_t bit = threadIdx.x / canonical_lanes;
    const float* direction = bits.projection + (static_cast<std::size_t>(word) * 32 + bit) * (dimensions + 1);
    const double product =
        cuda::detail::canonical_dot(direction, rows + static_cast<std::size_t>(row) * dimensions, dimensions);
    // The block's bits are combined in shared memory.
    __shared__ std::uint32_t bytes;
    if (threadIdx.x == 0) bytes = 0;
    __syncthreads();
    const bool set = product > static_cast<double>(direction[dimensions]);
    if (threadIdx.x % canonical_lanes == 0 && set) atomicOr(&bytes, 1U << bit);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = bytes;
}

}  // namespace

std::size_t seed_stride(const LaunchConfig& shape)
{
    return rows::whole_groups(shape.seeds);
}

std::size_t select_bytes(const LaunchConfig& shape, std::uint32_t count)
{
    return select_workspace_bytes(select_shape(shape, count));
}

void choose_starts(const GraphView& view, const LaunchConfig& shape, const rows::QueryView& queries,
                   std::uint32_t count, const SeedSpace& space, std::uint32_t shared_bytes, std::uint32_t* starts,
                   cudaStream_t stream)
{
    if (count == 0) return;
    const std::size_t stride = seed_stride(shape);
    // A prefix of the seeds is spread over the rows as all of them are.
    rows::HalfTable some = view.seed_halves;
    some.rows = shape.seeds;
    rows::scan_table(some, view.vectors.stride, queries, count, {space.scores, stride}, shared_bytes, stream);
    select_smallest(space.scores, select_shape(shape, count), space.values, space.columns, space.select, stream);
    const std::uint32_t all = count * shape.offered;
    starts_of_columns<<<(all + threads - 1) / threads, threads, 0, stream>>>(space.columns, view.seed_rows, all,
                                                                             starts);
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
