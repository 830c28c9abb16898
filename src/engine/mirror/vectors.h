// Checks and normalisation of incoming dense vectors. Bits are taken as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "numeric/metric.h"

namespace pgwarp
{

// Whether all values are finite.
bool all_finite(std::span<const float> values);

// Refuses NaN and infinities, and zero vectors when the metric is cosine (BadRequest).
void check_vectors(Metric metric, std::span<const float> vectors, std::size_t dimensions);

// Refuses NaN and infinities; normalises rows when the metric is cosine, and refuses zero vectors there (BadRequest).
void prepare_vectors(Metric metric, std::span<float> vectors, std::size_t dimensions);

// Refuses NaN and infinities (BadRequest).
void check_queries(Metric metric, std::span<const float> queries);

// The norm that score_error_bound() asks for, rounded up: L1 for l1, L2 otherwise.
float bound_norm(Metric metric, std::span<const float> vector);

// Prefetches the beginning of a vector that is read soon.
inline void prefetch_vector(const float* vector, std::size_t dimensions)
{
    constexpr std::size_t line = 64 / sizeof(float);
    constexpr std::size_t most = 16 * line;  // then the processor's own prefetching sets in
    for (std::size_t d = 0; d < std::min(dimensions, most); d += line) __builtin_prefetch(vector + d);
}

}  // namespace pgwarp
