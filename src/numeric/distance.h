// Fast single-precision distances with run-time SIMD dispatch (Highway). They select candidates; the final distance of
// a result is always canonical_distance() (metric.h).
//
// Searches compare scores: a smaller score is nearer, and the score is monotone in the canonical distance:
//   l2 -> squared distance, inner_product -> -dot, cosine -> -dot (rows and query normalised), l1 -> distance;
//   for bits (numeric/bits.h) -> distance.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/half.h"
#include "numeric/metric.h"

namespace pgwarp
{

// Returns the score of one row.
float score(Metric metric, const float* a, const float* b, std::size_t dimensions);

// out[i] = score(query, rows + i * dimensions), i < count.
void scores(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t dimensions,
            float* out);

// out[i] = score(query, rows[ids[i]]): the gather form, with prefetch.
void scores_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids, std::size_t count,
                   std::size_t dimensions, float* out);

// The same against binary16 rows. The caller passes the query in the space of the stored values, see half_codec.h.
void half_scores(Metric metric, const float* query, const half_bits* rows, std::size_t count, std::size_t dimensions,
                 float* out);
void half_scores_gather(Metric metric, const float* query, const half_bits* rows, const std::uint32_t* ids,
                        std::size_t count, std::size_t dimensions, float* out);

// A tile of scores of `query_count` queries against `row_count` rows, by matrix product: out is row-major
// [query_count][row_count]. `row_norms` are squared L2 norms of the rows (only l2 uses them; otherwise they may be
// null). l2 tiles hold |row|^2 - 2 query.row, without the query's own norm, which changes no order. Error: bounded by
// score_error_bound().
void score_tile(Metric metric, const float* queries, std::size_t query_count, const float* rows, const float* row_norms,
                std::size_t row_count, std::size_t dimensions, float* out);

// The same for the rows with these numbers; row_norms[i] is the norm of row ids[i].
void score_tile_gather(Metric metric, const float* queries, std::size_t query_count, const float* rows,
                       const std::uint32_t* ids, const float* row_norms, std::size_t row_count, std::size_t dimensions,
                       float* out);

// Returns a bound on |computed - true| of score(), scores() and score_tile() for vectors of these L2 norms (all
// single-precision paths, any order of summation). For l1 the norms are L1 norms.
float score_error_bound(Metric metric, std::size_t dimensions, float query_norm, float row_norm);

// Squared L2 norms in single precision; squared_norms() is for rows [count][dimensions].
float squared_norm(const float* a, std::size_t dimensions);
void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out);

// Conversion rounds to the nearest half, ties to even; values that are too large become infinity.
void to_half(const float* in, std::size_t count, half_bits* out);
void from_half(const half_bits* in, std::size_t count, float* out);

// The instruction set chosen at run time, for logs and the status view ("AVX3_ZEN4", "AVX2", "NEON", ...).
const char* simd_target();

}  // namespace pgwarp
