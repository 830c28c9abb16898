#include "ivfadc/mirror_kernels.h"

#include "device/error.h"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 256;

std::uint32_t blocks_for(std::size_t work, std::size_t each = threads)
{
    return static_cast<std::uint32_t>((work + each - 1) / each);
}

// One block for each list, one warp for each row.
__global__ void code_terms_kernel(MirrorView mirror, const float* rotated, float* terms)
{
    const std::uint32_t list = blockIdx.x;
    const std::uint32_t length = mirror.list_length[list];
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t width = mirror.dimensions / mirror.code.subquantizers;
    const std::uint32_t wider = mirror.dimensions % mirror.code.subquantizers;
    const float* centroid = rotated + static_cast<std::size_t>(list) * mirror.dimensions;
    for (std::uint32_t row = threadIdx.x / 32; row < whole_groups(length); row += threads / 32) {
        const std::uint32_t position = mirror.list_begin[list] + row;
        double norm = 0;
        double product = 0;
        for (std::uint32_t d = lane; d < mirror.dimensions && row < length && mirror.metric == Metric::l2; d += 32) {
            const std::uint32_t part = mirror.code.part_of[d];
            const std::uint32_t begin = part * width + min(part, wider);
            const std::uint32_t span = width + (part < wider ? 1 : 0);
            const std::uint32_t word = mirror.code.codes[code_offset(position, part, mirror.code.code_groups)];
            const double value = mirror.code.codebooks[static_cast<std::size_t>(begin) * 256 +
                                                       static_cast<std::size_t>(word) * span + d - begin];
            norm += value * value;
            product += value * centroid[d];
        }
        double sum = norm + 2 * product;
        sum = warp_sum(sum);
        if (lane == 0) terms[position] = row < length ? static_cast<float>(sum) : INFINITY;
    }
}

// One block for each list, one warp for each row.
__global__ void byte_terms_kernel(MirrorView mirror, float* terms)
{
    const std::uint32_t list = blockIdx.x;
    const std::uint32_t length = mirror.list_length[list];
    const std::uint32_t lane = threadIdx.x % 32;
    const float* centroid = mirror.centroids + static_cast<std::size_t>(list) * mirror.dimensions;
    for (std::uint32_t row = threadIdx.x / 32; row < whole_groups(length); row += threads / 32) {
        const std::uint32_t position = mirror.list_begin[list] + row;
        const std::uint8_t* bytes = mirror.byte.rows + static_cast<std::size_t>(position) * mirror.byte.stride;
        double sum = 0;
        for (std::uint32_t d = lane; d < mirror.dimensions && row < length && mirror.metric == Metric::l2; d += 32) {
            const double value = static_cast<double>(mirror.byte.scales[position]) * (bytes[byte_place(d)] - 128);
            sum += value * (value + 2 * (static_cast<double>(centroid[d]) - mirror.centres.half.mean[d]));
        }
        sum = warp_sum(sum);
        if (lane == 0) terms[position] = row < length ? static_cast<float>(sum) : INFINITY;
    }
}

__global__ void rotate_kernel(const float* rotation, const float* rows, std::size_t count, std::uint32_t dimensions,
                              float* out)
{
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= count * dimensions) return;
    const float* row = rows + i / dimensions * dimensions;
    const float* line = rotation + i % dimensions * dimensions;
    double sum = 0;
    for (std::uint32_t d = 0; d < dimensions; ++d) sum += static_cast<double>(line[d]) * row[d];
    out[i] = static_cast<float>(sum);
}

}  // namespace

void code_terms(const MirrorView& mirror, const float* rotated_centroids, float* terms, cudaStream_t stream)
{
    if (mirror.lists == 0) return;
    code_terms_kernel<<<mirror.lists, threads, 0, stream>>>(mirror, rotated_centroids, terms);
    check_launch("terms of codes");
}

void byte_terms(const MirrorView& mirror, float* terms, cudaStream_t stream)
{
    if (mirror.lists == 0) return;
    byte_terms_kernel<<<mirror.lists, threads, 0, stream>>>(mirror, terms);
    check_launch("terms of bytes");
}

void rotate(const float* rotation, const float* rows, std::size_t count, std::uint32_t dimensions, float* out,
            cudaStream_t stream)
{
    if (count == 0) return;
    rotate_kernel<<<blocks_for(count * dimensions), threads, 0, stream>>>(rotation, rows, count, dimensions, out);
    check_launch("rotating vectors");
}

}  // namespace pgwarp::cuda::ivfadc
