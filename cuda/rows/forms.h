// The forms of resident rows, made and put in their places while a mirror loads: halves, bytes and codes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// Bytes [offset, offset + bytes) of a row-major array [rows][row_bytes] go to where the rows' positions are.
void scatter_halves(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                    const std::uint32_t* position_of, __half* out, cudaStream_t stream);
void scatter_codes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t subquantizers,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);
void scatter_bytes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);

inline constexpr int half_exponent = 14;  // of the largest element of a row as halves

// The power of two that brings `largest` to about 2^exponent: the scale of halves.
float power_of_two(float largest, int exponent);

// largest[0] = the largest |x - mean| of vectors [rows][row_stride >= dimensions]; zero it first. Non-finite elements
// are passed over.
void largest_deviation(const float* vectors, const float* mean, std::size_t rows, std::uint32_t dimensions,
                       std::size_t row_stride, float* largest, cudaStream_t stream);
// Halves of (x - mean) * scale: source row i = rows[i] of `vectors`, or i where `rows` is none; no_row gives zeros.
void encode_halves(const float* vectors, const std::uint32_t* rows, std::size_t count, const float* mean, float scale,
                   std::uint32_t dimensions, std::size_t row_stride, __half* out, cudaStream_t stream);
// terms[i] = squared norm of the halves of row i (squared = false: 0); infinite where row_at[i] is no_row, or i >=
// rows.
void half_terms(const __half* halves, const std::uint32_t* row_at, std::size_t rows, std::size_t count,
                std::uint32_t dimensions, bool squared, float* terms, cudaStream_t stream);

// Rows [count][dimensions] as residuals in bytes, each to the centre centre_of[row] of centres [..][dimensions], or all
// to the first where centre_of is none: codes [count][dimensions] and scales [count], with the bits of encode_bytes()
// on the CPU (src/methods/rows/byte_lists.h).
void encode_byte_rows(const float* rows, std::size_t count, std::uint32_t dimensions, const std::uint32_t* centre_of,
                      const float* centres, std::uint8_t* codes, float* scales, cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
