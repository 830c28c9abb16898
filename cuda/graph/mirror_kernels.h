// What a graph's mirror computes on the device while it loads.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "methods/graph/edge_changes.h"

namespace pgwarp::cuda::graph
{

// out[i] = i for rows, rows::no_row from there to `count`.
void number_rows(std::uint32_t rows, std::size_t count, std::uint32_t* out, cudaStream_t stream);
// Makes these changes in neighbours [rows][degree], each of another place.
void change_edges(const EdgeChange* changes, std::size_t count, std::size_t degree, std::uint32_t* neighbours,
                  cudaStream_t stream);
// Adds to wrong[0] how many of neighbours[0, count) are neither rows nor no_neighbour.
void count_wrong(const std::uint32_t* neighbours, std::size_t count, std::uint32_t rows, std::uint32_t* wrong,
                 cudaStream_t stream);
// The halves and terms of these rows; zeros and infinity from `count` to `padded`.
void gather_halves(const __half* halves, const float* terms, const std::uint32_t* numbers, std::size_t count,
                   std::size_t padded, std::uint32_t stride, __half* out, float* out_terms, cudaStream_t stream);

// The bytes [count][stride] and terms of these rows; stride of whole pieces of 16.
void gather_byte_rows(const std::int8_t* rows, const float2* terms, const std::uint32_t* numbers, std::size_t count,
                      std::uint32_t stride, std::int8_t* out, float2* out_terms, cudaStream_t stream);

// The neighbours [count][degree] of these rows.
void gather_neighbours(const std::uint32_t* neighbours, std::size_t degree, const std::uint32_t* numbers,
                       std::size_t count, std::uint32_t* out, cudaStream_t stream);
// These rows, or the first `count` where no numbers are given, of vectors [..][row_stride >= dimensions] or, decoded,
// of halves [..][half_stride(dimensions)]: floats [count][dimensions]. Vectors may lie in page-locked host memory.
void gather_vectors(const float* vectors, std::size_t row_stride, std::uint32_t dimensions,
                    const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream);
void decode_halves(const __half* halves, const float* mean, float scale, std::uint32_t dimensions,
                   const std::uint32_t* numbers, std::size_t count, float* out, cudaStream_t stream);
// Rows as they are compared as bytes (view.h), of codes [count][dimensions] and scales [count] as rows/forms.h
// makes them: signed bytes [count][stride], zeros behind the dimensions, and terms with the bits of encode_byte_row()
// (methods/graph/byte_choice.h). squared: the metric is l2.
void finish_byte_rows(const std::uint8_t* codes, const float* scales, std::size_t count, std::uint32_t dimensions,
                      std::uint32_t stride, bool squared, std::int8_t* out, float2* terms, cudaStream_t stream);

}  // namespace pgwarp::cuda::graph
