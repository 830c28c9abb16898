// The true nearest rows of each query, by brute force in float64, and recall against them.
#pragma once

#include <string>

#include "matrix.h"

namespace pgwarp::bench
{

enum class Metric { l2, inner_product, cosine };

Metric parse_metric(const std::string& name);

// The distance that nearest means: squared L2, negative inner product, or negative cosine similarity.
double distance(Metric metric, std::span<const float> a, std::span<const float> b);

class GroundTruth
{
public:
    // Compute the k nearest rows of each query, or read them from the folder `cache` when it has them ("" = no cache).
    static GroundTruth compute(const Matrix<float>& base, const Matrix<float>& queries, Metric metric, std::size_t k,
                               const std::string& cache);
    // Take ids from a file that covers all of `base`.
    static GroundTruth given(const Matrix<float>& base, const Matrix<float>& queries, Metric metric,
                             const Matrix<std::int32_t>& ids);

    std::size_t k() const { return distances_.columns; }

    // The part of the k true nearest that `ids` holds. A row exactly as far as the k-th counts, so ties do not matter;
    // no row counts twice.
    double recall(const Matrix<float>& base, std::span<const float> query, std::size_t query_number, Metric metric,
                  std::vector<std::int32_t> ids, std::size_t k) const;

private:
    Matrix<double> distances_;  // of each query to its k nearest, ascending
};

}  // namespace pgwarp::bench
