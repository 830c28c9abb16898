#include <algorithm>

#include "cluster/device_math.cuh"
#include "cluster/packing.h"
#include "device/error.h"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr int frame_columns = 32;
constexpr int frame_strands = 8;
constexpr int frame_parts = 64;
constexpr int group = 8;  // lanes a row: each takes eight dimensions of a chunk
constexpr float no_centroid = 1e25F;

// Sums and largest magnitude of the columns of one share of the centroids; the order of additions is fixed.
__global__ void column_sums_kernel(const float* centroids, std::size_t count, std::size_t dimensions, double* partial,
                                   unsigned* largest)
{
    __shared__ double strands[frame_strands][frame_columns];
    const std::size_t column = std::size_t{blockIdx.x} * frame_columns + threadIdx.x;
    const std::size_t share = (count + gridDim.y - 1) / gridDim.y;
    const std::size_t end = min(count, (blockIdx.y + 1) * share);
    double sum = 0;
    float high = 0;
    if (column < dimensions) {
        for (std::size_t i = blockIdx.y * share + threadIdx.y; i < end; i += frame_strands) {
            const float value = centroids[i * dimensions + column];
            sum += value;
            high = fmaxf(high, fabsf(value));
        }
    }
    strands[threadIdx.y][threadIdx.x] = sum;
    atomicMax(largest, __float_as_uint(high));
    __syncthreads();
    if (threadIdx.y != 0 || column >= dimensions) return;
    for (int s = 1; s < frame_strands; ++s) sum += strands[s][threadIdx.x];
    partial[blockIdx.y * dimensions + column] = sum;
}

__global__ void finish_frame_kernel(const double* partial, int parts, std::size_t count, std::size_t dimensions,
                                    bool centred, const unsigned* largest, float* origin, float* scale)
{
    const std::size_t column = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const float factor = power_of_two(min(120, max(-120, -exponent_of(__uint_as_float(*largest)))));
    if (column == 0) *scale = factor;
    if (column >= dimensions) return;
    double sum = 0;
    for (int p = 0; p < parts; ++p) sum += partial[p * dimensions + column];
    origin[column] = centred && count > 0 ? static_cast<float>(sum / static_cast<double>(count) * factor) : 0.0F;
}

// Eight values of a row in the frame, from dimension `from` on; zero past the end.
__device__ void load_framed(const float* row, std::size_t dimensions, std::size_t from, const float* origin,
                            float scale, float (&out)[8])
{
    if (dimensions % 4 == 0 && from + 8 <= dimensions) {
        const float4 low = *reinterpret_cast<const float4*>(row + from);
        const float4 high = *reinterpret_cast<const float4*>(row + from + 4);
        const float4 shift_low = *reinterpret_cast<const float4*>(origin + from);
        const float4 shift_high = *reinterpret_cast<const float4*>(origin + from + 4);
        out[0] = framed(low.x, scale, shift_low.x);
        out[1] = framed(low.y, scale, shift_low.y);
        out[2] = framed(low.z, scale, shift_low.z);
        out[3] = framed(low.w, scale, shift_low.w);
        out[4] = framed(high.x, scale, shift_high.x);
        out[5] = framed(high.y, scale, shift_high.y);
        out[6] = framed(high.z, scale, shift_high.z);
        out[7] = framed(high.w, scale, shift_high.w);
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = from + e < dimensions ? framed(row[from + e], scale, origin[from + e]) : 0.0F;
}

// Eight values rounded to binary16; `values` becomes the rounding errors.
__device__ uint4 split_half(float (&values)[8])
{
    __half2 pairs[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        pairs[p] = __floats2half2_rn(values[2 * p], values[2 * p + 1]);
        values[2 * p] -= __low2float(pairs[p]);
        values[2 * p + 1] -= __high2float(pairs[p]);
    }
    return *reinterpret_cast<uint4*>(pairs);
}

// The place of a lane's sixteen bytes within a chunk of a tile, in halves.
__device__ int swizzled(int row, int lane)
{
    return row * chunk_width + ((lane ^ (row & 7)) << 3);
}

__global__ __launch_bounds__(256) void pack_rows_kernel(const float* rows, std::size_t count, std::size_t dimensions,
                                                        const float* origin, const float* frame_scale, int parts,
                                                        std::size_t chunks, __half* tiles, float* row_scale)
{
    const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / group;
    const int lane = threadIdx.x % group;
    const std::size_t tile = i / row_tile;
    const int within = static_cast<int>(i % row_tile);
    const float scale = *frame_scale;
    const bool real = i < count;
    const float* row = rows + (real ? i : 0) * dimensions;
    float values[8];
    float high = 0;
    for (std::size_t c = 0; real && c < chunks; ++c) {
        load_framed(row, dimensions, c * chunk_width + lane * 8, origin, scale, values);
        for (const float value : values) high = fmaxf(high, fabsf(value));
    }
    for (int offset = 1; offset < group; offset *= 2) high = fmaxf(high, __shfl_xor_sync(~0U, high, offset));
    const float own = real ? power_of_two(min(40, max(-40, 13 - exponent_of(high)))) : 0.0F;
    if (lane == 0) row_scale[i] = own;
    __half* out = tiles + tile * parts * chunks * row_tile * chunk_width + swizzled(within, lane);
    for (std::size_t c = 0; c < chunks; ++c) {
        load_framed(row, dimensions, c * chunk_width + lane * 8, origin, scale, values);
        for (float& value : values) value *= own;
        *reinterpret_cast<uint4*>(out + c * row_tile * chunk_width) = split_half(values);
        if (parts == 2) *reinterpret_cast<uint4*>(out + (chunks + c) * row_tile * chunk_width) = split_half(values);
    }
}

__global__ __launch_bounds__(256) void largest_framed_kernel(const float* centroids, std::size_t values,
                                                             std::size_t dimensions, const float* origin,
                                                             const float* frame_scale, unsigned* largest)
{
    const float scale = *frame_scale;
    float high = 0;
    for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < values;
         at += std::size_t{gridDim.x} * blockDim.x) {
        high = fmaxf(high, fabsf(framed(centroids[at], scale, origin[at % dimensions])));
    }
    high = warp_largest(high);
    if (threadIdx.x % 32 == 0) atomicMax(largest, __float_as_uint(high));
}

// half_norms = |c|^2 / 2 of the values as rounded, in the scale of the products.
__global__ __launch_bounds__(256) void pack_centroids_kernel(const float* centroids, std::size_t count,
                                                             std::size_t dimensions, const float* origin,
                                                             const float* frame_scale, const unsigned* largest,
                                                             bool dot, int parts, std::size_t chunks, __half* tiles,
                                                             float* half_norms)
{
    const std::size_t i = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) / group;
    const int lane = threadIdx.x % group;
    const int within = static_cast<int>(i % centroid_tile);
    const float scale = *frame_scale;
    const float shared = power_of_two(min(60, max(-40, 13 - exponent_of(__uint_as_float(*largest)))));
    const bool real = i < count;
    const float* row = centroids + (real ? i : 0) * dimensions;
    __half* out = tiles + i / centroid_tile * parts * chunks * centroid_tile * chunk_width + swizzled(within, lane);
    double squares = 0;
    float values[8];
    for (std::size_t c = 0; c < chunks; ++c) {
        load_framed(row, dimensions, c * chunk_width + lane * 8, origin, scale, values);
        float kept[8];
        for (int e = 0; e < 8; ++e) {
            values[e] = real ? values[e] * shared : 0.0F;
            kept[e] = values[e];
        }
        *reinterpret_cast<uint4*>(out + c * centroid_tile * chunk_width) = split_half(values);
        if (parts == 2)
            *reinterpret_cast<uint4*>(out + (chunks + c) * centroid_tile * chunk_width) = split_half(values);
        for (int e = 0; e < 8; ++e) {
            const double rounded = static_cast<double>(kept[e]) - values[e];
            squares += rounded * rounded;
        }
    }
    for (int offset = 1; offset < group; offset *= 2) squares += __shfl_xor_sync(~0U, squares, offset);
    if (lane == 0) half_norms[i] = !real ? no_centroid : dot ? 0.0F : static_cast<float>(squares / (2.0 * shared));
}

unsigned blocks_for(std::size_t rows)
{
    return static_cast<unsigned>(rows * group / 256);
}

}  // namespace

Frame::Frame(Context& context, std::size_t dimensions, cudaStream_t stream)
    : dimensions_(dimensions),
      partial_(context.pool(), frame_parts * dimensions, "cluster workspace", stream),
      largest_(context.pool(), 1, "cluster workspace", stream),
      origin_(context.pool(), dimensions, "cluster workspace", stream),
      scale_(context.pool(), 1, "cluster workspace", stream)
{
}

void Frame::fit(const float* centroids, std::size_t count, bool centred, cudaStream_t stream)
{
    const unsigned columns = static_cast<unsigned>((dimensions_ + frame_columns - 1) / frame_columns);
    const unsigned parts = static_cast<unsigned>(std::clamp<std::size_t>(count / 64, 1, frame_parts));
    check(cudaMemsetAsync(largest_.data(), 0, sizeof(unsigned), stream), "clearing a maximum");
    column_sums_kernel<<<dim3(columns, parts), dim3(frame_columns, frame_strands), 0, stream>>>(
        centroids, count, dimensions_, partial_.data(), largest_.data());
    check_launch("column sums");
    finish_frame_kernel<<<static_cast<unsigned>((dimensions_ + 255) / 256), 256, 0, stream>>>(
        partial_.data(), static_cast<int>(parts), count, dimensions_, centred, largest_.data(), origin_.data(),
        scale_.data());
    check_launch("frame");
}

PackedRows::PackedRows(Context& context, std::size_t capacity, std::size_t dimensions, int parts, cudaStream_t stream)
    : dimensions_(dimensions), parts_(parts), chunks_(chunks_of(dimensions))
{
    const std::size_t rounded = (capacity + row_tile - 1) / row_tile * row_tile;
    tiles_ = DeviceArray<__half>(context.pool(), rounded * parts * chunks_ * chunk_width, "packed rows", stream);
    scale_ = DeviceArray<float>(context.pool(), rounded, "packed rows", stream);
}

void PackedRows::pack(const float* rows, std::size_t count, const Frame& frame, cudaStream_t stream)
{
    if (count == 0) return;
    const std::size_t rounded = (count + row_tile - 1) / row_tile * row_tile;
    // About 0.08 ms of memory traffic a launch.
    const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 25) / (dimensions_ * row_tile)) * row_tile;
    for (std::size_t first = 0; first < rounded; first += step) {
        const std::size_t here = std::min(step, rounded - first);
        pack_rows_kernel<<<blocks_for(here), 256, 0, stream>>>(
            rows + first * dimensions_, std::min(here, count - first), dimensions_, frame.origin(), frame.scale(),
            parts_, chunks_, tiles_.data() + first * parts_ * chunks_ * chunk_width, scale_.data() + first);
        check_launch("pack rows");
    }
}

PackedRowsView PackedRows::view(std::size_t first, std::size_t count) const
{
    return {tiles_.data() + first * parts_ * chunks_ * chunk_width, scale_.data() + first, count};
}

PackedCentroids::PackedCentroids(Context& context, std::size_t count, std::size_t dimensions, int parts,
                                 cudaStream_t stream)
    : count_(count), dimensions_(dimensions), parts_(parts), chunks_(chunks_of(dimensions))
{
    const std::size_t rounded = (count + centroid_tile - 1) / centroid_tile * centroid_tile;
    tiles_ = DeviceArray<__half>(context.pool(), rounded * parts * chunks_ * chunk_width, "packed centroids", stream);
    half_norms_ = DeviceArray<float>(context.pool(), rounded, "packed centroids", stream);
    largest_ = DeviceArray<unsigned>(context.pool(), 1, "packed centroids", stream);
}

void PackedCentroids::pack(const float* centroids, const Frame& frame, bool dot, cudaStream_t stream)
{
    const std::size_t values = count_ * dimensions_;
    check(cudaMemsetAsync(largest_.data(), 0, sizeof(unsigned), stream), "clearing a maximum");
    largest_framed_kernel<<<static_cast<unsigned>(std::clamp<std::size_t>(values / 2048, 1, 512)), 256, 0, stream>>>(
        centroids, values, dimensions_, frame.origin(), frame.scale(), largest_.data());
    check_launch("largest centroid value");
    pack_centroids_kernel<<<blocks_for(half_norms_.size()), 256, 0, stream>>>(
        centroids, count_, dimensions_, frame.origin(), frame.scale(), largest_.data(), dot, parts_, chunks_,
        tiles_.data(), half_norms_.data());
    check_launch("pack centroids");
}

PackedCentroidsView PackedCentroids::view() const
{
    return {tiles_.data(), half_norms_.data(), static_cast<int>(half_norms_.size() / centroid_tile)};
}

}  // namespace pgwarp::cuda
