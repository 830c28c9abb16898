// Queries as halves: each is the moved query times a power of two of its own, so that its largest element uses fp16's
// range and small elements keep their precision.
#include "rows/queries.h"

#include "cluster/hadamard.h"
#include "device/error.h"
#include "rows/values.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = 128;
constexpr int largest_exponent = 8;  // elements below 2^8: products with stored halves stay far inside fp32

__device__ float moved_element(const QuerySpace& space, const float* query, const float* moved, std::uint32_t d,
                               std::uint32_t dimensions)
{
    if (space.signs != nullptr) return moved[d];  // hadamard_rotate_rows() has written it
    if (space.mean != nullptr) {
        return static_cast<float>((static_cast<double>(query[d]) - space.mean[d]) * space.scale);
    }
    if (space.rotation == nullptr) return query[d];
    float sum = 0;
    const float* line = space.rotation + static_cast<std::size_t>(d) * dimensions;
    for (std::uint32_t i = 0; i < dimensions; ++i) sum += line[i] * query[i];
    return sum;
}

// The power of two that brings `largest` just below 2^largest_exponent.
__device__ float power_for(float largest)
{
    if (!(largest > 0) || isinf(largest)) return 1;
    int exponent = 0;
    frexpf(largest, &exponent);
    return ldexpf(1.0F, min(max(largest_exponent - exponent, -120), 120));
}

__device__ float block_max(float value)
{
    __shared__ float parts[threads / 32];
    value = warp_largest(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    for (const float part : parts) value = fmaxf(value, part);
    return value;
}

__device__ void prepare(const float* original, std::uint32_t dimensions, std::uint32_t stride, const QuerySpace& space,
                        const PreparedQueries& out)
{
    const std::size_t query = blockIdx.x;
    const float* from = original + query * dimensions;
    float* moved = out.moved + query * dimensions;
    float largest = 0;
    for (std::uint32_t d = threadIdx.x; d < dimensions; d += threads) {
        const float value = moved_element(space, from, moved, d, dimensions);
        moved[d] = value;
        largest = fmaxf(largest, fabsf(value));
    }
    const float power = power_for(block_max(largest));
    for (std::uint32_t d = threadIdx.x; d < stride; d += threads) {
        // Each thread reads the elements that it wrote.
        const float value = d < dimensions ? moved[d] * power : 0.0F;
        out.halves[query * stride + d] = __float2half_rn(value);
    }
    if (threadIdx.x == 0) out.multipliers[query] = space.factor / power;
    if (out.norms != nullptr && threadIdx.x < 32) {
        const double norm = __dsqrt_rn(canonical_dot(from, from, dimensions));
        if (threadIdx.x == 0) out.norms[query] = norm;
    }
}

// Blocks with y = 0 prepare for the first space, blocks with y = 1 for the second.
__global__ __launch_bounds__(threads) void prepare_kernel(const float* original, std::uint32_t dimensions,
                                                          std::uint32_t stride, QuerySpace first, QuerySpace second,
                                                          PreparedQueries for_first, PreparedQueries for_second)
{
    if (blockIdx.y == 0) {
        prepare(original, dimensions, stride, first, for_first);
    } else {
        prepare(original, dimensions, stride, second, for_second);
    }
}

// The rotation by signs needs whole rows, so it has a launch of its own.
void rotate_by_signs(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, cudaStream_t stream)
{
    if (space.signs != nullptr) hadamard_rotate_rows(original, count, dimensions, {}, space.signs, out.moved, stream);
}

}  // namespace

QuerySpace space_of(Metric metric, const HalfView& half)
{
    if (metric != Metric::l2) return {};
    return {.mean = half.mean, .scale = half.scale, .factor = 2};
}

void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, cudaStream_t stream)
{
    if (count == 0) return;
    rotate_by_signs(original, count, dimensions, space, out, stream);
    prepare_kernel<<<count, threads, 0, stream>>>(original, dimensions, half_stride(dimensions), space, space, out,
                                                  out);
    check_launch("preparing queries");
}

void prepare_queries(const float* original, std::uint32_t count, std::uint32_t dimensions, const QuerySpace& space,
                     const PreparedQueries& out, const QuerySpace& second, const PreparedQueries& second_out,
                     cudaStream_t stream)
{
    if (count == 0) return;
    rotate_by_signs(original, count, dimensions, space, out, stream);
    prepare_kernel<<<dim3(count, 2), threads, 0, stream>>>(original, dimensions, half_stride(dimensions), space, second,
                                                           out, second_out);
    check_launch("preparing queries");
}

}  // namespace pgwarp::cuda::rows
