#include <algorithm>

#include "cluster/assign.h"
#include "cluster/codeword_search.cuh"
#include "cluster/product_parts.h"
#include "cluster/product_quantizer.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

constexpr int threads = 256;
constexpr int warps = threads / 32;
template <int padded>
constexpr int rows_per_lane = padded <= 2   ? 8
                              : padded <= 8 ? 4
                                            : 2;
template <int padded>
constexpr int tile_rows = 32 * rows_per_lane<padded>;  // rows of a warp at a time

struct EncodeTask {
    const float* rows;
    std::size_t count;
    ResidualBase base;
    PartShape shape;
    const float* codebooks;
    const float* scale;
    std::uint8_t* codes;
};

template <int padded>
__device__ inline void load_part(const EncodeTask& task, std::size_t row, int begin, int width, float scale,
                                 float (&values)[padded])
{
    const float* from = task.rows + row * task.shape.dimensions + begin;
    const float* centroid = nullptr;
    if (task.base.labels != nullptr)
        centroid = task.base.centroids + std::size_t{task.base.labels[row]} * task.shape.dimensions + begin;
    if (width == padded && padded % 4 == 0 && task.shape.dimensions % 4 == 0 && begin % 4 == 0) {
#pragma unroll
        for (int e = 0; e < padded; e += 4) {
            float4 value = *reinterpret_cast<const float4*>(from + e);
            if (centroid != nullptr) {
                const float4 shift = *reinterpret_cast<const float4*>(centroid + e);
                value = make_float4(value.x - shift.x, value.y - shift.y, value.z - shift.z, value.w - shift.w);
            }
            values[e] = framed(value.x, scale, 0);
            values[e + 1] = framed(value.y, scale, 0);
            values[e + 2] = framed(value.z, scale, 0);
            values[e + 3] = framed(value.w, scale, 0);
        }
        return;
    }
#pragma unroll
    for (int e = 0; e < padded; ++e) {
        const float value = e < width ? from[e] : 0.0F;
        const float shift = e < width && centroid != nullptr ? centroid[e] : 0.0F;
        values[e] = framed(value - shift, scale, 0);
    }
}

// A warp encodes one part of a tile of rows. Blocks are short, because searches wait for them.
template <int padded>
__global__ __launch_bounds__(threads) void encode_kernel(EncodeTask task, int first_part, std::size_t first_row,
                                                         std::size_t end_row)
{
    __shared__ SharedCodebook<padded> book;
    const int part = first_part + static_cast<int>(blockIdx.x);
    const int begin = task.shape.begin(part);
    const int width = task.shape.begin(part + 1) - begin;
    const float scale = *task.scale;
    load_codebook(book, task.codebooks + begin * codewords, width, scale);
    const int lane = threadIdx.x % 32;
    const std::size_t tile = first_row + (std::size_t{blockIdx.y} * warps + threadIdx.x / 32) * tile_rows<padded>;
    if (tile >= end_row) return;
    constexpr int held = rows_per_lane<padded>;
    float values[held][padded];
    int code[held];
#pragma unroll
    for (int r = 0; r < held; ++r)
        load_part(task, min(tile + r * 32 + lane, end_row - 1), begin, width, scale, values[r]);
    nearest_codewords(book, values, code);
#pragma unroll
    for (int r = 0; r < held; ++r) {
        const std::size_t row = tile + r * 32 + lane;
        if (row < end_row) task.codes[row * task.shape.parts + part] = static_cast<std::uint8_t>(code[r]);
    }
}

__global__ void gather_part_kernel(EncodeTask task, std::size_t first_row, std::size_t count, int begin, int width,
                                   float* out)
{
    const std::size_t values = count * width;
    for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < values;
         at += std::size_t{gridDim.x} * blockDim.x) {
        const std::size_t row = first_row + at / width;
        const std::size_t column = begin + at % width;
        float value = task.rows[row * task.shape.dimensions + column];
        if (task.base.labels != nullptr)
            value -= task.base.centroids[std::size_t{task.base.labels[row]} * task.shape.dimensions + column];
        out[at] = value;
    }
}

__global__ void gather_residuals_kernel(const float* rows, std::size_t dimensions, const std::uint32_t* numbers,
                                        std::size_t count, ResidualBase base, float* out)
{
    const std::size_t values = count * dimensions;
    for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < values;
         at += std::size_t{gridDim.x} * blockDim.x) {
        const std::size_t row = numbers[at / dimensions];
        const std::size_t column = at % dimensions;
        out[at] = rows[row * dimensions + column] - base.centroids[base.labels[row] * dimensions + column];
    }
}

__global__ void store_codes_kernel(const std::uint32_t* labels, std::size_t count, int part, int parts,
                                   std::uint8_t* codes)
{
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) codes[i * parts + part] = static_cast<std::uint8_t>(labels[i]);
}

// Wide parts: k-means assignment on a copy of the part's columns.
void encode_wide(Context& context, const EncodeTask& task, const CancelToken* cancel, cudaStream_t stream)
{
    const std::size_t widest = (task.shape.dimensions + task.shape.parts - 1) / task.shape.parts;
    const std::size_t step = std::min(task.count, std::max<std::size_t>(1024, (std::size_t{1} << 26) / widest));
    DeviceArray<float> columns(context.pool(), step * widest, "cluster workspace", stream);
    DeviceArray<std::uint32_t> labels(context.pool(), step, "cluster workspace", stream);
    for (std::size_t first = 0; first < task.count; first += step) {
        const std::size_t here = std::min(step, task.count - first);
        for (int part = 0; part < task.shape.parts; ++part) {
            const int begin = task.shape.begin(part);
            const int width = task.shape.begin(part + 1) - begin;
            gather_part_kernel<<<1024, threads, 0, stream>>>(task, first, here, begin, width, columns.data());
            check_launch("gather a part");
            assign_to_centroids(context, Metric::l2, columns.data(), here, width, task.codebooks + begin * codewords,
                                codewords, labels.data(), cancel, stream);
            store_codes_kernel<<<static_cast<unsigned>((here + threads - 1) / threads), threads, 0, stream>>>(
                labels.data(), here, part, task.shape.parts, task.codes + first * task.shape.parts);
            check_launch("store codes");
        }
    }
}

template <int padded>
void encode_narrow(const EncodeTask& task, const CancelToken* cancel, cudaStream_t stream)
{
    // Blocks of a launch of 0.05 to 0.1 ms, by the operations on a row.
    constexpr std::size_t block_rows = std::size_t{warps} * tile_rows<padded>;
    constexpr std::size_t blocks = (std::size_t{1} << 31) / ((padded + 6) * codewords * block_rows);
    const std::size_t all_parts = task.shape.parts;
    const std::size_t parts = std::min(blocks, all_parts);
    const std::size_t step = blocks / parts * block_rows;
    for (std::size_t first = 0; first < task.count; first += step) {
        if (cancel != nullptr) cancel->check();
        const std::size_t here = std::min(step, task.count - first);
        const auto tiles = static_cast<unsigned>((here + block_rows - 1) / block_rows);
        for (std::size_t part = 0; part < all_parts; part += parts) {
            const dim3 grid(static_cast<unsigned>(std::min(parts, all_parts - part)), tiles);
            encode_kernel<padded><<<grid, threads, 0, stream>>>(task, static_cast<int>(part), first, first + here);
            check_launch("encode rows");
        }
    }
}

}  // namespace

void gather_residuals(const float* rows, std::size_t dimensions, const std::uint32_t* numbers, std::size_t count,
                      const ResidualBase& base, float* out, cudaStream_t stream)
{
    if (count == 0) return;
    // About 0.08 ms a launch.
    const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 25) / dimensions);
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(here * dimensions / 256, 1, 4096));
        gather_residuals_kernel<<<blocks, 256, 0, stream>>>(rows, dimensions, numbers + first, here, base,
                                                            out + first * dimensions);
        check_launch("gather residuals");
    }
}

void encode_product(Context& context, const float* rows, std::size_t count, const ResidualBase& base,
                    const ProductQuantizer& shape, const float* codebooks, std::uint8_t* codes,
                    const CancelToken* cancel, cudaStream_t stream)
{
    if (count == 0) return;
    DeviceArray<float> scale(context.pool(), 1, "cluster workspace", stream);
    magnitude_scale(codebooks, codewords * shape.dimensions(), scale.data(), stream);
    const EncodeTask task{rows, count, base, PartShape(shape), codebooks, scale.data(), codes};
    const std::size_t widest = (shape.dimensions() + shape.subquantizers() - 1) / shape.subquantizers();
    if (widest <= 2) return encode_narrow<2>(task, cancel, stream);
    if (widest <= 4) return encode_narrow<4>(task, cancel, stream);
    if (widest <= 8) return encode_narrow<8>(task, cancel, stream);
    if (widest <= 16) return encode_narrow<16>(task, cancel, stream);
    encode_wide(context, task, cancel, stream);
}

}  // namespace pgwarp::cuda
