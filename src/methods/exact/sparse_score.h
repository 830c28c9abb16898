// Scores of sparse vectors for one query. They read the elements of a row alone, and bound its canonical distance: a
// row whose bounds lie outside of the distances that are asked for needs no other comparison.
//
// With the query's elements q in an array by index, and x for those of a row:
//     inner product  - sum q x
//     cosine         1 - sum q x / (|q| |x|)
//     L2, squared    |q|^2 + |x|^2 - 2 sum q x
//     L1             |q|_1 + sum (|q - x| - |q|)
// Claim. A score and the canonical distance (L2: its square) lie within 2^-32 m of each other, where m is
//     |q||x|,  1,  |q|^2 + |x|^2  and  |q|_1 + |x|_1.
// Proof. No product of two floats is rounded in float64, or leaves its range. Both numbers are sums of at most 2^17 + 4
// terms (max_list_words of each vector), whose absolute values add up to at most 4 m. A sum of n terms is off by at
// most n 2^-53 (1 + 2^-30) times that, so each number is off by less than 2^-33 m, with room for the roundings of terms
// that are differences. Norms are off by less still, so the cosines are.
#pragma once

#include <vector>

#include "methods/bulk_memory.h"
#include "numeric/metric.h"
#include "numeric/sparse_distance.h"

namespace pgwarp
{

// The size of a vector as scores need it: its L2 norm squared for l2, its L1 norm for l1, otherwise its L2 norm.
double sparse_size(Metric metric, const SparseView& vector);

// Bounds of a distance, squared for l2. NaN where the vectors have no distance.
struct ScoreBounds {
    double lower;
    double upper;
};

class SparseScorer
{
public:
    // `dimensions`: more than every index of rows and of the query.
    SparseScorer(Metric metric, const SparseView& query, std::size_t dimensions);

    // `size`: sparse_size() of the row.
    ScoreBounds bounds(const SparseView& row, double size) const;
    // Returns a distance on the scale of the bounds.
    double scaled(double distance) const;

private:
    double sum_products(const SparseView& row) const;
    double sum_differences(const SparseView& row) const;

    Metric metric_;
    double size_;               // of the query
    BulkVector<float> values_;  // [dimensions]
};

}  // namespace pgwarp
