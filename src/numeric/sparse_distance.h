// The canonical distances of sparse vectors, which keep the elements that are not zero. Nothing here allocates or
// throws, because backends call it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/metric.h"

namespace pgwarp
{

// A sparse vector: its elements by ascending index. It points to the caller's memory.
struct SparseView {
    const std::uint32_t* indices;  // [count], ascending, each once, from 0
    const float* values;           // [count]
    std::size_t count;
};

// Returns the distance that the SQL operator returns: of l2, inner_product, cosine or l1. The terms of all indices that
// either vector has are added in ascending order to one float64 number, so a search that adds up inverted lists in
// ascending order of their terms gives the same bits. The cosine distance of a vector of zeros is NaN, as in pgvector.
double sparse_distance(Metric metric, const SparseView& a, const SparseView& b);

// The parts of these distances, for callers that need one alone.
double sparse_l2_squared(const SparseView& a, const SparseView& b);
double sparse_dot(const SparseView& a, const SparseView& b);
double sparse_l1(const SparseView& a, const SparseView& b);
// The inner product of a vector with itself, and the L2 norm.
double sparse_norm_squared(const SparseView& a);
double sparse_norm(const SparseView& a);

// The cosine distance of two vectors, from their inner product and those with themselves.
double sparse_cosine_distance(double dot, double norm_squared_a, double norm_squared_b);

}  // namespace pgwarp
