#include "exact/unit_rows.h"

#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = 256;
constexpr std::uint32_t block_rows = block_threads / canonical_lanes;
constexpr std::uint64_t launch_elements = std::uint64_t{1} << 30;

// Eight lanes compute one row. Each lane writes only elements that it alone reads, after the sum that all lanes join.
__global__ void unit_rows(float* rows, std::uint32_t first, std::uint32_t end, std::uint32_t dimensions)
{
    const std::uint32_t row = first + blockIdx.x * block_rows + threadIdx.x / canonical_lanes;
    if (row >= end) return;
    float* values = rows + std::size_t{row} * dimensions;
    const double norm = __dsqrt_rn(detail::canonical_dot(values, values, dimensions));
    for (std::uint32_t i = threadIdx.x % canonical_lanes; i < dimensions; i += canonical_lanes) {
        values[i] = __double2float_rn(__ddiv_rn(values[i], norm));
    }
}

}  // namespace

void make_unit_rows(float* rows, std::uint32_t count, std::uint32_t dimensions, cudaStream_t stream)
{
    const std::uint64_t piece = std::max<std::uint64_t>(1, launch_elements / dimensions / block_rows) * block_rows;
    for (std::uint64_t begin = 0; begin < count; begin += piece) {
        const auto first = static_cast<std::uint32_t>(begin);
        const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, begin + piece));
        unit_rows<<<(end - first + block_rows - 1) / block_rows, block_threads, 0, stream>>>(rows, first, end,
                                                                                             dimensions);
        check_launch("making unit rows");
    }
}

}  // namespace pgwarp::cuda
