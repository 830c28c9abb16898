// The kernels that a mirror runs while it loads. All are asynchronous and throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// terms[i] = |r|^2 + 2 c.r for the decoded residual r of position i in the list of centroid c (Faiss paper, equation
// 11: the term that depends only on the row). rotated_centroids: the centroids themselves where there is no rotation.
void code_terms(const MirrorView& mirror, const float* rotated_centroids, float* terms, cudaStream_t stream);
// terms[i] = |r|^2 + 2 (c - m).r for the residual r of position i, its list's centroid c, and the mean m of the
// centres, to which queries are relative; 0 for products, infinite in padding. Lists, centroids, centres and bytes of
// the mirror must be loaded.
void byte_terms(const MirrorView& mirror, float* terms, cudaStream_t stream);
// out[i] = rotation * rows[i], in double precision.
void rotate(const float* rotation, const float* rows, std::size_t count, std::uint32_t dimensions, float* out,
            cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
