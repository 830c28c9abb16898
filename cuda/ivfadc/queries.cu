// A query as halves is the moved query times a power of two of its own, so that its largest element uses fp16's range
// and small ones lose nothing against it.
#include "ivfadc/queries.h"

#include "device/error.h"
#include "ivfadc/values.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 128;
constexpr int largest_exponent = 8;  // elements below 2^8: products with stored halves stay far inside fp32

enum class Space { plain, centred, rotated };

struct Target {
    Space space;
    const float* mean;      // centred
    float scale;            // centred
    const float* rotation;  // rotated
    float factor;           // of the multipliers: 2 or 1, over the scale of the rows
    bool with_norms;
};

__device__ float moved_element(const Target& target, const float* query, std::uint32_t d, std::uint32_t dimensions)
{
    if (target.space == Space::centred) {
        return static_cast<float>((static_cast<double>(query[d]) - target.mean[d]) * target.scale);
    }
    if (target.space == Space::plain) return query[d];
    float sum = 0;
    const float* line = target.rotation + static_cast<std::size_t>(d) * dimensions;
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
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    for (const float part : parts) value = fmaxf(value, part);
    return value;
}

__device__ void prepare(const float* original, std::uint32_t dimensions, std::uint32_t stride, const Target& target,
                        const PreparedQueries& out)
{
    const std::size_t query = blockIdx.x;
    const float* from = original + query * dimensions;
    float* moved = out.moved + query * dimensions;
    float largest = 0;
    for (std::uint32_t d = threadIdx.x; d < dimensions; d += threads) {
        const float value = moved_element(target, from, d, dimensions);
        moved[d] = value;
        largest = fmaxf(largest, fabsf(value));
    }
    const float power = power_for(block_max(largest));
    for (std::uint32_t d = threadIdx.x; d < stride; d += threads) {
        // Each thread reads back what it wrote itself.
        const float value = d < dimensions ? moved[d] * power : 0.0F;
        out.halves[query * stride + d] = __float2half_rn(value);
    }
    if (threadIdx.x == 0) out.multipliers[query] = target.factor / power;
    if (target.with_norms && threadIdx.x < 32) {
        const double norm = __dsqrt_rn(canonical_dot(from, from, dimensions));
        if (threadIdx.x == 0) out.norms[query] = norm;
    }
}

// Blocks y = 0 prepare for the rows, y = 1 for the centroids.
__global__ __launch_bounds__(threads) void prepare_kernel(const float* original, std::uint32_t dimensions,
                                                          std::uint32_t stride, Target rows, Target centroids,
                                                          PreparedQueries for_rows, PreparedQueries for_centroids)
{
    if (blockIdx.y == 0) {
        prepare(original, dimensions, stride, rows, for_rows);
    } else {
        prepare(original, dimensions, stride, centroids, for_centroids);
    }
}

Target target_of_rows(const MirrorView& mirror)
{
    const bool squared = mirror.metric == Metric::l2;
    Target target{Space::plain, nullptr, 1, nullptr, squared ? 2.0F : 1.0F, true};
    if (mirror.scans_codes) {
        if (mirror.code.rotation != nullptr) target.space = Space::rotated;
        target.rotation = mirror.code.rotation;
        target.factor /= mirror.code.half_scale;
    } else if (squared && mirror.scans_bytes) {
        target.space = Space::centred;
        target.mean = mirror.centre.mean;
    } else if (squared) {
        target.space = Space::centred;
        target.mean = mirror.half.mean;
        target.scale = mirror.half.scale;
    }
    return target;
}

Target target_of_centroids(const MirrorView& mirror)
{
    const bool squared = mirror.metric == Metric::l2;
    Target target{Space::plain, nullptr, 1, nullptr, squared ? 2.0F : 1.0F, false};
    if (squared) {
        target.space = Space::centred;
        target.mean = mirror.centre.mean;
        target.scale = mirror.centre.scale;
    }
    return target;
}

}  // namespace

void prepare_for_rows(const MirrorView& mirror, const float* original, std::uint32_t count, const PreparedQueries& out,
                      cudaStream_t stream)
{
    if (count == 0) return;
    const Target target = target_of_rows(mirror);
    prepare_kernel<<<count, threads, 0, stream>>>(original, mirror.dimensions, mirror.stride, target, target, out, out);
    check_launch("preparing queries");
}

void prepare_queries(const MirrorView& mirror, const float* original, std::uint32_t count,
                     const PreparedQueries& for_rows, const PreparedQueries& for_centroids, cudaStream_t stream)
{
    if (count == 0) return;
    prepare_kernel<<<dim3(count, 2), threads, 0, stream>>>(original, mirror.dimensions, mirror.stride,
                                                           target_of_rows(mirror), target_of_centroids(mirror),
                                                           for_rows, for_centroids);
    check_launch("preparing queries");
}

}  // namespace pgwarp::cuda::ivfadc
