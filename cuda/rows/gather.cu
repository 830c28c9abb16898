#include "rows/gather.h"

#include <algorithm>

#include "device/error.h"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr std::size_t launch_elements = std::size_t{1} << 26;  // read by a launch: about 0.15 ms

__global__ void gather_rows_kernel(const float* rows, std::size_t dimensions, const std::uint32_t* numbers,
                                   std::size_t count, float* out)
{
    const std::size_t values = count * dimensions;
    for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < values;
         at += std::size_t{gridDim.x} * blockDim.x) {
        out[at] = rows[numbers[at / dimensions] * dimensions + at % dimensions];
    }
}

__global__ void copy_columns_kernel(const float* rows, std::size_t count, std::size_t dimensions, std::size_t first,
                                    std::size_t width, float* out)
{
    const std::size_t values = count * width;
    for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < values;
         at += std::size_t{gridDim.x} * blockDim.x) {
        out[at] = rows[at / width * dimensions + first + at % width];
    }
}

// The largest number of rows of `width` values that one launch reads.
std::size_t launch_rows(std::size_t width)
{
    return std::max<std::size_t>(1, launch_elements / width);
}

unsigned blocks_for(std::size_t values)
{
    return static_cast<unsigned>(std::clamp<std::size_t>(values / 256, 1, 4096));
}

}  // namespace

void gather_rows(const float* rows, std::size_t dimensions, const std::uint32_t* numbers, std::size_t count, float* out,
                 cudaStream_t stream)
{
    if (count == 0) return;
    const std::size_t step = launch_rows(dimensions);
    for (std::size_t at = 0; at < count; at += step) {
        const std::size_t here = std::min(step, count - at);
        gather_rows_kernel<<<blocks_for(here * dimensions), 256, 0, stream>>>(rows, dimensions, numbers + at, here,
                                                                              out + at * dimensions);
        check_launch("gather rows");
    }
}

void copy_columns(const float* rows, std::size_t count, std::size_t dimensions, std::size_t first, std::size_t width,
                  float* out, cudaStream_t stream)
{
    if (count == 0 || width == 0) return;
    const std::size_t step = launch_rows(width);
    for (std::size_t at = 0; at < count; at += step) {
        const std::size_t here = std::min(step, count - at);
        copy_columns_kernel<<<blocks_for(here * width), 256, 0, stream>>>(rows + at * dimensions, here, dimensions,
                                                                          first, width, out + at * width);
        check_launch("copying columns");
    }
}

}  // namespace pgwarp::cuda::rows
