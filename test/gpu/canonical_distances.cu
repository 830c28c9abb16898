#include "canonical_distances.h"

#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = 256;
constexpr std::size_t block_pairs = block_threads / canonical_lanes;
constexpr std::size_t launch_values = std::size_t{1} << 30;  // of a launch, so that it takes less than 2 ms

__global__ void pair_distances(Metric metric, const float* queries, const float* rows, std::uint32_t dimensions,
                               const QueryRow* pairs, std::size_t count, double* out)
{
    const std::size_t i = blockIdx.x * block_pairs + threadIdx.x / canonical_lanes;
    if (i >= count) return;
    const QueryRow pair = pairs[i];
    const double distance = canonical_distance(metric, queries + std::size_t{pair.query} * dimensions,
                                               rows + std::size_t{pair.row} * dimensions, dimensions);
    if (threadIdx.x % canonical_lanes == 0) out[i] = distance;
}

}  // namespace

void canonical_distances(Metric metric, const float* queries, const float* rows, std::uint32_t dimensions,
                         const QueryRow* pairs, std::size_t count, double* out, cudaStream_t stream)
{
    const std::size_t piece = std::max<std::size_t>(block_pairs, launch_values / std::max(1U, dimensions));
    for (std::size_t begin = 0; begin < count; begin += piece) {
        const std::size_t width = std::min(piece, count - begin);
        const auto blocks = static_cast<unsigned>((width + block_pairs - 1) / block_pairs);
        pair_distances<<<blocks, block_threads, 0, stream>>>(metric, queries, rows, dimensions, pairs + begin, width,
                                                             out + begin);
        check_launch("canonical distances");
    }
}

}  // namespace pgwarp::cuda
