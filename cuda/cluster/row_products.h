// Inner products of rows with rows in fp32: rotations (OPQ), and scores of rows, written out or collected. Each sum
// runs over the dimensions in order.
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

// For each query a list of rows near it, and the score below which a row is appended.
struct NearLists {
    unsigned long long* keys;  // [queries][room], of select/key.cuh
    std::size_t room;
    unsigned* counts;     // [queries]
    const float* bounds;  // [queries]
};

// Appends keys of (score, row) in any order, with the scores of score_rows; those that are not finite become the
// largest float. Row numbers count from first_row. The lists have room for all rows. sums: scratch of near_sums()
// floats, which is enough for fewer queries, too.
void collect_near(const float* queries, std::size_t query_count, const float* rows, const float* norms,
                  std::size_t row_count, std::size_t first_row, std::size_t dimensions, const NearLists& lists,
                  float* sums, cudaStream_t stream);
std::size_t near_sums(std::size_t query_count, std::size_t dimensions);

// out[i] = |rows[i]|^2.
void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out, cudaStream_t stream);

}  // namespace pgwarp::cuda
