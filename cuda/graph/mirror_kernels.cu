#include "graph/mirror_kernels.h"

#include <algorithm>

#include "device/error.h"
#include "methods/graph/graph.h"
#include "rows/layout.h"
#include "rows/values.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr unsigned threads = 256;

unsigned blocks_for(std::size_t count)
{
    return static_cast<unsigned>((count + threads - 1) / threads);
}

__device__ std::size_t thread_number()
{
    return static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
}

__global__ void number_rows_kernel(std::uint32_t rows, std::size_t count, std::uint32_t* out)
{
    const std::size_t i = thread_number();
    if (i < count) out[i] = i < rows ? static_cast<std::uint32_t>(i) : rows::no_row;
}

__global__ void count_wrong_kernel(const std::uint32_t* neighbours, std::size_t count, std::uint32_t rows,
                                   std::uint32_t* wrong)
{
    std::uint32_t own = 0;
    for (std::size_t i = thread_number(); i < count; i += static_cast<std::size_t>(gridDim.x) * threads) {
        own += neighbours[i] >= rows && neighbours[i] != no_neighbour ? 1 : 0;
    }
    if (own > 0) atomicAdd(wrong, own);
}

__global__ void change_edges_kernel(const EdgeChange* changes, std::size_t count, std::size_t degree,
                                    std::uint32_t* neighbours)
{
    const std::size_t i = thread_number();
    if (i < count) neighbours[changes[i].row * degree + changes[i].place] = changes[i].neighbour;
}

__global__ void gather_halves_kernel(const __half* halves, const float* terms, const std::uint32_t* numbers,
                                     std::size_t count, std::size_t padded, std::uint32_t stride, __half* out,
                                     float* out_terms)
{
    const std::size_t i = thread_number();
    if (i >= padded * stride) return;
    const std::size_t at = i / stride;
    const std::size_t row = at < count ? numbers[at] : 0;
    out[i] = at < count ? halves[row * stride + i % stride] : __half{};
    if (i % stride == 0) out_terms[at] = at < count ? terms[row] : INFINITY;
}

__global__ void gather_byte_rows_kernel(const uint4* rows, const float2* terms, const std::uint32_t* numbers,
                                        std::size_t count, std::uint32_t pieces, uint4* out, float2* out_terms)
{
    const std::size_t i = thread_number();
    if (i >= count * pieces) return;
    const std::size_t at = i / pieces;
    const std::size_t row = numbers[at];
    out[i] = rows[row * pieces + i % pieces];
    if (i % pieces == 0) out_terms[at] = terms[row];
}

__global__ void gather_neighbours_kernel(const std::uint32_t* neighbours, std::size_t degree,
                                         const std::uint32_t* numbers, std::size_t count, std::uint32_t* out)
{
    const std::size_t i = thread_number();
    if (i < count * degree) out[i] = neighbours[numbers[i / degree] * degree + i % degree];
}

__global__ void gather_vectors_kernel(const float* vectors, std::size_t row_stride, std::uint32_t dimensions,
                                      const std::uint32_t* numbers, std::size_t count, float* out)
{
    const std::size_t i = thread_number();
    if (i >= count * dimensions) return;
    const std::size_t at = i / dimensions;
    const std::size_t row = numbers != nullptr ? numbers[at] : at;
    out[i] = vectors[row * row_stride + i % dimensions];
}

__global__ void decode_halves_kernel(const __half* halves, const float* mean, float scale, std::uint32_t dimensions,
                                     const std::uint32_t* numbers, std::size_t count, float* out)
{
    const std::size_t i = thread_number();
    if (i >= count * dimensions) return;
    const std::size_t at = i / dimensions;
    const std::size_t d = i % dimensions;
    const std::size_t row = numbers != nullptr ? numbers[at] : at;
    out[i] = rows::decoded_half(halves[row * rows::half_stride(dimensions) + d], __fdiv_rn(1.0F, scale), mean[d]);
}

// One warp for each row.
__global__ void finish_byte_rows_kernel(const std::uint8_t* codes, const float* scales, std::size_t count,
                                        std::uint32_t dimensions, std::uint32_t stride, bool squared, std::int8_t* out,
                                        float2* terms)
{
    const std::size_t row = thread_number() / 32;
    if (row >= count) return;
    const std::uint32_t lane = threadIdx.x % 32;
    long long squares = 0;
    for (std::uint32_t d = lane; d < stride; d += 32) {
        const int value = d < dimensions ? static_cast<int>(codes[row * dimensions + d]) - 128 : 0;
        out[row * stride + d] = static_cast<std::int8_t>(value);
        squares += value * value;
    }
    squares = warp_sum(squares);
    if (lane != 0) return;
    const float scale = scales[row];
    const double norm = __dmul_rn(__dmul_rn(static_cast<double>(squares), scale), scale);
    terms[row] = {scale, squared ? static_cast<float>(norm) : 0.0F};
}

}  // namespace

void number_rows(std::uint32_t rows, std::size_t count, std::uint32_t* out, cudaStream_t stream)
{
    if (count == 0) return;
    number_rows_kernel<<<blocks_for(count), threads, 0, stream>>>(rows, count, out);
    check_launch("numbering rows");
}

void count_wrong(const std::uint32_t* neighbours, std::size_t count, std::uint32_t rows, std::uint32_t* wrong,
                 cudaStream_t stream)
{
    if (count == 0) return;
    count_wrong_kernel<<<std::min(blocks_for(count), 1056U), threads, 0, stream>>>(neighbours, count, rows, wrong);
    check_launch("checking neighbours");
}

void change_edges(const EdgeChange* changes, std::size_t count, std::size_t degree, std::uint32_t* neighbours,
                  cudaStream_t stream)
{
    if (count == 0) return;
    change_edges_kernel<<<blocks_for(count), threads, 0, stream>>>(changes, count, degree, neighbours);
    check_launch("changing neighbours");
}

void gather_halves(const __half* halves, const float* terms, const std::uint32_t* numbers, std::size_t count,
                   std::size_t padded, std::uint32_t stride, __half* out, float* out_terms, cudaStream_t stream)
{
    if (padded == 0) return;
    gather_halves_kernel<<<blocks_for(padded * stride), threads, 0, stream>>>(halves, terms, numbers, count, padded,
                                                                              stride, out, out_terms);
    check_launch("gathering seeds");
}

void gather_byte_rows(const std::int8_t* rows, const float2* terms, const std::uint32_t* numbers, std::size_t count,
                      std::uint32_t stride, std::int8_t* out, float2* out_terms, cudaStream_t stream)
{
    if (count == 0) return;
    const std::uint32_t pieces = stride / sizeof(uint4);
    gather_byte_rows_kernel<<<blocks_for(count * pieces), threads, 0, stream>>>(
        reinterpret_cast<const uint4*>(rows), terms, numbers, count, pieces, reinterpret_cast<uint4*>(out), out_terms);
    check_launch("gathering seeds");
}

void gather_neighbours(const std::uint32_t* neighbours, std::size_t degree, const std::uint32_t* numbers,
                       std::size_t count, std::uint32_t* out, cudaStream_t stream)
{
    if (count * degree == 0) return;
    gather_neighbours_kernel<<<blocks_for(count * degree), threads, 0, stream>>>(neighbours, degree, numbers, count,
                                                                                 out);
    check_launch("gathering neighbours");
}

void gather_vectors(const float* vectors, std::size_t row_stride, std::uint32_t dimensions,
                    const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream)
{
    if (count == 0) return;
    gather_vectors_kernel<<<blocks_for(count * dimensions), threads, 0, stream>>>(vectors, row_stride, dimensions,
                                                                                  numbers, count, out);
    check_launch("gathering vectors");
}

void decode_halves(const __half* halves, const float* mean, float scale, std::uint32_t dimensions,
                   const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream)
{
    if (count == 0) return;
    decode_halves_kernel<<<blocks_for(count * dimensions), threads, 0, stream>>>(halves, mean, scale, dimensions,
                                                                                 numbers, count, out);
    check_launch("decoding half vectors");
}

void finish_byte_rows(const std::uint8_t* codes, const float* scales, std::size_t count, std::uint32_t dimensions,
                      std::uint32_t stride, bool squared, std::int8_t* out, float2* terms, cudaStream_t stream)
{
    if (count == 0) return;
    finish_byte_rows_kernel<<<blocks_for(count * 32), threads, 0, stream>>>(codes, scales, count, dimensions, stride,
                                                                            squared, out, terms);
    check_launch("finishing rows as bytes");
}

}  // namespace pgwarp::cuda::graph
