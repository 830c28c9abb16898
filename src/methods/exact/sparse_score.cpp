// Scores of sparse vectors.
#include "methods/exact/sparse_score.h"

#include <algorithm>
#include <cmath>

namespace pgwarp
{

namespace
{

constexpr double score_error = 0x1p-32;

}  // namespace

double sparse_size(Metric metric, const SparseView& vector)
{
    if (metric == Metric::l1) return sparse_l1(vector, {nullptr, nullptr, 0});
    return metric == Metric::l2 ? sparse_norm_squared(vector) : sparse_norm(vector);
}

SparseScorer::SparseScorer(Metric metric, const SparseView& query, std::size_t dimensions)
    : metric_(metric), size_(sparse_size(metric, query)), values_(dimensions)
{
    std::fill(values_.begin(), values_.end(), 0.0F);
    for (std::size_t i = 0; i < query.count; ++i) values_[query.indices[i]] = query.values[i];
}

double SparseScorer::sum_products(const SparseView& row) const
{
    double sum = 0;
    for (std::size_t i = 0; i < row.count; ++i) sum += static_cast<double>(row.values[i]) * values_[row.indices[i]];
    return sum;
}

double SparseScorer::sum_differences(const SparseView& row) const
{
    double sum = 0;
    for (std::size_t i = 0; i < row.count; ++i) {
        const double value = values_[row.indices[i]];
        sum += std::fabs(value - row.values[i]) - std::fabs(value);
    }
    return sum;
}

ScoreBounds SparseScorer::bounds(const SparseView& row, double size) const
{
    const auto around = [](double score, double magnitude) {
        const double error = score_error * magnitude;
        return ScoreBounds{score - error, score + error};
    };
    switch (metric_) {
        case Metric::l2:
            return around(size_ + size - 2 * sum_products(row), size_ + size);
        case Metric::cosine:
            return around(1 - sum_products(row) / (size_ * size), 1);
        case Metric::l1:
            return around(size_ + sum_differences(row), size_ + size);
        default:
            return around(-sum_products(row), size_ * size);
    }
}

double SparseScorer::scaled(double distance) const
{
    // Squares of negative numbers would be positive, and no distance is negative.
    return metric_ == Metric::l2 && distance > 0 ? distance * distance : distance;
}

}  // namespace pgwarp
