// The kernels that a graph's mirror runs while it loads. All are asynchronous and throw CudaError.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "methods/graph/edge_changes.h"

namespace pgwarp::cuda::graph
{

// out[i] = i for i < rows, rows::no_row for i from rows to count - 1.
void number_rows(std::uint32_t rows, std::size_t count, std::uint32_t* out, cudaStream_t stream);
// Applies changes to neighbours [rows][degree]. No two changes have the same place.
void change_edges(const EdgeChange* changes, std::size_t count, std::size_t degree, std::uint32_t* neighbours,
                  cudaStream_t stream);
// Adds to wrong[0] the number of neighbours[0, count) that are neither rows nor no_neighbour.
void count_wrong(const std::uint32_t* neighbours, std::size_t count, std::uint32_t rows, std::uint32_t* wrong,
                 cudaStream_t stream);
// Copies the halves and terms of the numbered rows, and writes zeros and infinity from `count` to `padded`.
void gather_halves(const __half* halves, const float* terms, const std::uint32_t* numbers, std::size_t count,
                   std::size_t padded, std::uint32_t stride, __half* out, float* out_terms, cudaStream_t stream);

// Copies the bytes [count][stride] and terms of the numbered rows. stride: a multiple of 16.
void gather_byte_rows(const std::int8_t* rows, const float2* terms, const std::uint32_t* numbers, std::size_t count,
                      std::uint32_t stride, std::int8_t* out, float2* out_terms, cudaStream_t stream);

// Copies the neighbours [count][degree] of the numbered rows.
void gather_neighbours(const std::uint32_t* neighbours, std::size_t degree, const std::uint32_t* numbers,
                       std::size_t count, std::uint32_t* out, cudaStream_t stream);
// Write floats [count][dimensions] of the numbered rows, or of the first `count` where numbers is null. The source is
// vectors [..][row_stride >= dimensions], which may lie in page-locked host memory, or halves
// [..][half_stride(dimensions)].
void gather_vectors(const float* vectors, std::size_t row_stride, std::uint32_t dimensions,
                    const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream);
void decode_halves(const __half* halves, const float* mean, float scale, std::uint32_t dimensions,
                   const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream);
// Makes rows as bytes (view.h) from codes [count][dimensions] and scales [count] of encode_byte_rows() (rows/forms.h):
// signed bytes [count][stride] with zeros from the dimensions on, and terms with the bits of encode_byte_row()
// (methods/graph/byte_choice.h). squared: the metric is l2.
void finish_byte_rows(const std::uint8_t* codes, const float* scales, std::size_t count, std::uint32_t dimensions,
                      std::uint32_t stride, bool squared, std::int8_t* out, float2* terms, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
