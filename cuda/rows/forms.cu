#include "rows/forms.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "device/error.h"
#include "select/warp.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = 256;

std::uint32_t blocks_for(std::size_t work, std::size_t each = threads)
{
    return static_cast<std::uint32_t>((work + each - 1) / each);
}

// Element `first` + i of an array [rows][width] goes to place(position of its row, its number in the row).
template <class Element, class Place>
__global__ void scatter_kernel(const Element* piece, std::uint64_t first, std::size_t count, std::uint32_t width,
                               const std::uint32_t* position_of, Place place, Element* out)
{
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= count) return;
    const std::uint64_t at = first + i;
    out[place(position_of[at / width], static_cast<std::uint32_t>(at % width))] = piece[i];
}

// Rows of `stride` elements.
struct RowPlace {
    std::size_t stride;
    __device__ std::size_t operator()(std::uint32_t position, std::uint32_t i) const { return position * stride + i; }
};

struct BytePlace {
    std::size_t stride;
    __device__ std::size_t operator()(std::uint32_t position, std::uint32_t i) const
    {
        return position * stride + byte_place(i);
    }
};

struct CodePlace {
    std::uint32_t code_groups;
    __device__ std::size_t operator()(std::uint32_t position, std::uint32_t i) const
    {
        return code_offset(position, i, code_groups);
    }
};

template <class Element, class Place>
void scatter(const std::byte* piece, std::uint64_t first, std::size_t count, std::uint32_t width,
             const std::uint32_t* position_of, const Place& place, void* out, cudaStream_t stream)
{
    if (count == 0) return;
    scatter_kernel<<<blocks_for(count), threads, 0, stream>>>(reinterpret_cast<const Element*>(piece), first, count,
                                                              width, position_of, place, static_cast<Element*>(out));
    check_launch("placing rows");
}

__global__ void largest_deviation_kernel(const float* vectors, const float* mean, std::size_t count,
                                         std::uint32_t dimensions, std::size_t row_stride, float* largest)
{
    float own = 0;
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * threads;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += step) {
        const std::size_t d = i % dimensions;
        const float deviation = fabsf(vectors[i / dimensions * row_stride + d] - mean[d]);
        if (deviation <= FLT_MAX) own = fmaxf(own, deviation);
    }
    own = warp_largest(own);
    // The bits of floats that are not negative order as the floats do.
    if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<int*>(largest), __float_as_int(own));
}

__global__ void encode_halves_kernel(const float* vectors, const std::uint32_t* rows, std::size_t count,
                                     const float* mean, float scale, std::uint32_t dimensions, std::size_t row_stride,
                                     __half* out)
{
    const std::uint32_t stride = half_stride(dimensions);
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    if (i >= count * stride) return;
    const std::size_t at = i / stride;
    const std::uint32_t d = static_cast<std::uint32_t>(i % stride);
    const std::size_t row = rows != nullptr ? rows[at] : at;
    float value = 0;
    if (d < dimensions && row != no_row) {
        value = (vectors[row * row_stride + d] - mean[d]) * scale;
        value = fminf(fmaxf(value, -65504.0F), 65504.0F);
    }
    out[i] = __float2half_rn(value);
}

// One warp for each row.
__global__ void half_terms_kernel(const __half* halves, const std::uint32_t* row_at, std::size_t rows,
                                  std::size_t count, std::uint32_t stride, bool squared, float* terms)
{
    const std::size_t row = (static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x) / 32;
    if (row >= count) return;
    const std::uint32_t lane = threadIdx.x % 32;
    double sum = 0;
    for (std::uint32_t d = lane; d < stride && squared && row < rows; d += 32) {
        const double value = __half2float(halves[row * stride + d]);
        sum += value * value;
    }
    sum = warp_sum(sum);
    const bool there = row_at != nullptr ? row_at[row] != no_row : row < rows;
    if (lane == 0) terms[row] = there ? static_cast<float>(sum) : INFINITY;
}

// One warp for each row.
__global__ void encode_byte_rows_kernel(const float* rows, std::size_t count, std::uint32_t dimensions,
                                        const std::uint32_t* centre_of, const float* centres, std::uint8_t* codes,
                                        float* scales)
{
    const std::size_t row = (static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x) / 32;
    if (row >= count) return;
    const std::uint32_t lane = threadIdx.x % 32;
    const float* vector = rows + row * dimensions;
    const float* centre = centres + (centre_of != nullptr ? static_cast<std::size_t>(centre_of[row]) * dimensions : 0);
    float largest = 0;
    for (std::uint32_t d = lane; d < dimensions; d += 32) {
        largest = fmaxf(largest, fabsf(__fsub_rn(vector[d], centre[d])));
    }
    largest = warp_largest(largest);
    const float scale = fminf(__fdiv_rn(fmaxf(largest, 1e-30F), 127), FLT_MAX / 128);
    const float inverse = __fdiv_rn(1, scale);
    for (std::uint32_t d = lane; d < dimensions; d += 32) {
        const int rounded = __float2int_rn(__fmul_rn(__fsub_rn(vector[d], centre[d]), inverse));
        codes[row * dimensions + d] = static_cast<std::uint8_t>(min(max(rounded, -128), 127) + 128);
    }
    if (lane == 0) scales[row] = scale;
}

__global__ void dead_positions_kernel(const std::uint64_t* row_bits, const std::uint32_t* row_at,
                                      std::uint32_t positions, std::uint32_t* out)
{
    const std::uint32_t position = blockIdx.x * threads + threadIdx.x;
    if (position >= positions) return;
    const std::uint32_t row = row_at[position];
    const bool dead = row == no_row || ((row_bits[row / 64] >> (row % 64)) & 1U) != 0;
    const std::uint32_t word = __ballot_sync(0xffffffffU, dead);
    if (threadIdx.x % 32 == 0) out[position / 32] = word;
}

}  // namespace

float power_of_two(float largest, int exponent)
{
    if (!(largest > 0) || !std::isfinite(largest)) return 1;
    int own = 0;
    std::frexp(largest, &own);
    return std::ldexp(1.0F, std::clamp(exponent - own, -126, 126));
}

void scatter_halves(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                    const std::uint32_t* position_of, __half* out, cudaStream_t stream)
{
    const std::size_t stride = half_stride(dimensions);
    if (offset % 2 == 0 && bytes % 2 == 0) {
        return scatter<std::uint16_t>(piece, offset / 2, bytes / 2, dimensions, position_of, RowPlace{stride}, out,
                                      stream);
    }
    // Byte by byte, as the piece begins or ends within an element.
    scatter<std::uint8_t>(piece, offset, bytes, 2 * dimensions, position_of, RowPlace{2 * stride}, out, stream);
}

void scatter_codes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t subquantizers,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream)
{
    const CodePlace place{(subquantizers + group_codes - 1) / group_codes};
    scatter<std::uint8_t>(piece, offset, bytes, subquantizers, position_of, place, out, stream);
}

void largest_deviation(const float* vectors, const float* mean, std::size_t rows, std::uint32_t dimensions,
                       std::size_t row_stride, float* largest, cudaStream_t stream)
{
    if (rows == 0) return;
    largest_deviation_kernel<<<1024, threads, 0, stream>>>(vectors, mean, rows * dimensions, dimensions, row_stride,
                                                           largest);
    check_launch("measuring vectors");
}

void encode_halves(const float* vectors, const std::uint32_t* rows, std::size_t count, const float* mean, float scale,
                   std::uint32_t dimensions, std::size_t row_stride, __half* out, cudaStream_t stream)
{
    if (count == 0) return;
    encode_halves_kernel<<<blocks_for(count * half_stride(dimensions)), threads, 0, stream>>>(
        vectors, rows, count, mean, scale, dimensions, row_stride, out);
    check_launch("encoding half vectors");
}

void half_terms(const __half* halves, const std::uint32_t* row_at, std::size_t rows, std::size_t count,
                std::uint32_t dimensions, bool squared, float* terms, cudaStream_t stream)
{
    const std::uint32_t stride = half_stride(dimensions);
    // About 0.15 ms a launch, bound by memory traffic or by the number of warps.
    const std::size_t step = std::clamp<std::size_t>((std::size_t{1} << 27) / stride, 1, std::size_t{1} << 20);
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        half_terms_kernel<<<blocks_for(here, threads / 32), threads, 0, stream>>>(
            halves + first * stride, row_at != nullptr ? row_at + first : nullptr, rows - std::min(rows, first), here,
            stride, squared, terms + first);
        check_launch("norms of half vectors");
    }
}

void encode_byte_rows(const float* rows, std::size_t count, std::uint32_t dimensions, const std::uint32_t* centre_of,
                      const float* centres, std::uint8_t* codes, float* scales, cudaStream_t stream)
{
    if (count == 0) return;
    // 0.1 to 0.2 ms a launch, bound by memory traffic or by the number of warps.
    const std::size_t step = std::clamp<std::size_t>((std::size_t{1} << 26) / dimensions, 1, std::size_t{1} << 20);
    for (std::size_t first = 0; first < count; first += step) {
        const std::size_t here = std::min(step, count - first);
        encode_byte_rows_kernel<<<blocks_for(here * 32), threads, 0, stream>>>(
            rows + first * dimensions, here, dimensions, centre_of != nullptr ? centre_of + first : nullptr, centres,
            codes + first * dimensions, scales + first);
        check_launch("encoding rows in bytes");
    }
}

void scatter_bytes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream)
{
    scatter<std::uint8_t>(piece, offset, bytes, dimensions, position_of, BytePlace{byte_stride(dimensions)}, out,
                          stream);
}

void dead_positions(const std::uint64_t* row_bits, const std::uint32_t* row_at, std::uint32_t positions,
                    std::uint32_t* out, cudaStream_t stream)
{
    if (positions == 0) return;
    dead_positions_kernel<<<blocks_for(positions), threads, 0, stream>>>(row_bits, row_at, positions, out);
    check_launch("marking dead rows");
}

}  // namespace pgwarp::cuda::rows
