// What a mirror computes on the device while it loads.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// terms[i] = |r|^2 + 2 c.r for the decoded residual r of a position in the list of centroid c (Faiss paper, equation
// 11: the term that depends on the row alone); rotated centroids where there is a rotation.
void code_terms(const MirrorView& mirror, const float* rotated_centroids, float* terms, cudaStream_t stream);
// terms[i] = |r|^2 + 2 (c - m).r for the residual r of a position, its list's centroid c and the mean m of the
// centres, which queries are relative to; 0 for products, infinite in padding. The mirror's lists, centroids, centres
// and bytes hold.
void byte_terms(const MirrorView& mirror, float* terms, cudaStream_t stream);
// Bit of a position set where its row's bit is set in row_bits (words of 64) or where there is no row.
void dead_positions(const std::uint64_t* row_bits, const std::uint32_t* row_at, std::uint32_t positions,
                    std::uint32_t* out, cudaStream_t stream);
// out[i] = rotation * rows[i], in double precision.
void rotate(const float* rotation, const float* rows, std::size_t count, std::uint32_t dimensions, float* out,
            cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
