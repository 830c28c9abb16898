// Inner products of rows with rows in fp32, written out: rotations (OPQ) and the scores behind calibration's truth.
// Each sum runs over the dimensions in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/product_quantizer.h"
#include "device/context.h"

namespace pgwarp::cuda
{

// out[i][j] = rotation[j] . (rows[i] less its centroid). All device; rotation [dimensions][dimensions].
void rotate_rows(const float* rows, std::size_t count, std::size_t dimensions, const ResidualBase& base,
                 const float* rotation, float* out, cudaStream_t stream);

// out[i][j] = norms[j] - 2 queries[i] . rows[j], or - queries[i] . rows[j] where norms is null; out
// [query_count][stride].
void score_rows(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                std::size_t row_count, std::size_t dimensions, float* out, std::size_t stride, cudaStream_t stream);

// out[i] = |rows[i]|^2.
void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out, cudaStream_t stream);

}  // namespace pgwarp::cuda
