// What a mirror computes on the device while it loads.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Bytes [offset, offset + bytes) of a row-major array [rows][row_bytes] go to where the rows' positions are.
void scatter_halves(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t dimensions,
                    const std::uint32_t* position_of, __half* out, cudaStream_t stream);
void scatter_codes(const std::byte* piece, std::uint64_t offset, std::size_t bytes, std::uint32_t subquantizers,
                   const std::uint32_t* position_of, std::uint8_t* out, cudaStream_t stream);

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
// terms[i] = |r|^2 + 2 c.r for the decoded residual r of a position in the list of centroid c (Faiss paper, equation
// 11: the term that depends on the row alone); rotated centroids where there is a rotation.
void code_terms(const MirrorView& mirror, const float* rotated_centroids, float* terms, cudaStream_t stream);
// Bit of a position set where its row's bit is set in row_bits (words of 64) or where there is no row.
void dead_positions(const std::uint64_t* row_bits, const std::uint32_t* row_at, std::uint32_t positions,
                    std::uint32_t* out, cudaStream_t stream);
// out[i] = rotation * rows[i], in double precision.
void rotate(const float* rotation, const float* rows, std::size_t count, std::uint32_t dimensions, float* out,
            cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
