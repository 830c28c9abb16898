// Kernels that make the forms of resident rows (halves, bytes, codes) and write them to the rows' positions while a
// mirror loads. All throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// Scatters bytes [offset, offset + bytes) of a row-major array [rows][row bytes] to the positions of the rows.
void scatter_halves(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                    const std::uint32_t* position_of, __half* out, cudaStream_t stream);
void scatter_codes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t subquantizers,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);
void scatter_bytes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);

inline constexpr int half_exponent = 14;  // largest element of a row as halves: below 2^14

// The power of two that brings `largest` to just below 2^exponent: the scale of halves.
float power_of_two(float largest, int exponent);

// largest[0] = the largest |x - mean| of vectors [rows][row_stride >= dimensions]. The caller zeroes it first.
// Non-finite elements are skipped.
void largest_deviation(const float* vectors, const float* mean, std::size_t rows, std::uint32_t dimensions,
                       std::size_t row_stride, float* largest, cudaStream_t stream);
// Halves of (x - mean) * scale. Row i of `out` is row rows[i] of `vectors`, or row i where `rows` is null; no_row gives
// zeros.
void encode_halves(const float* vectors, const std::uint32_t* rows, std::size_t count, const float* mean, float scale,
                   std::uint32_t dimensions, std::size_t row_stride, __half* out, cudaStream_t stream);
// terms[i] = squared norm of the halves of row i, or 0 where squared = false; infinite where row_at[i] is no_row or,
// where row_at is null, i >= rows.
void half_terms(const __half* halves, const std::uint32_t* row_at, std::size_t rows, std::size_t count,
                std::uint32_t dimensions, bool squared, float* terms, cudaStream_t stream);

// Encodes rows [count][dimensions] as residuals in bytes from the centre centre_of[row] of centres [..][dimensions], or
// from the first where centre_of is null: codes [count][dimensions] and scales [count], with the bits of encode_bytes()
// on the CPU (src/methods/rows/byte_lists.h).
void encode_byte_rows(const float* rows, std::size_t count, std::uint32_t dimensions, const std::uint32_t* centre_of,
                      const float* centres, std::uint8_t* codes, float* scales, cudaStream_t stream);

// Sets the bit of a position where its row's bit is set in row_bits (words of 64), and in padding.
void dead_positions(const std::uint64_t* row_bits, const std::uint32_t* row_at, std::uint32_t positions,
                    std::uint32_t* out, cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
