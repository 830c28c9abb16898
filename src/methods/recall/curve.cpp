// Means and confidence bounds of recall, made monotonic in effort.
#include "methods/recall/curve.h"

#include <algorithm>
#include <cmath>

namespace pgwarp
{

namespace
{

struct MeanOf {
    double sum = 0;
    double squares = 0;
    std::size_t count = 0;

    void add(double value)
    {
        sum += value;
        squares += value * value;
        ++count;
    }
    RecallCurve::Estimate estimate() const
    {
        if (count == 0) return {};
        const auto n = static_cast<double>(count);
        const double mean = sum / n;
        return {mean, std::max(0.0, squares / n - mean * mean) / n, count};
    }
};

}  // namespace

RecallCurve::Estimate RecallCurve::mean_of_column(std::size_t column, const Shares& shares) const
{
    MeanOf mean;
    for (const auto& of_query : shares)
        if (of_query[column] >= 0) mean.add(of_query[column]);
    if (mean.count > 0 && nearer_first_) mean.add(1 - 1.0 / Calibration::ks[column]);
    return mean.estimate();
}

// Fewer queries are measured at larger efforts. Their recall at the effort before, whose mean over more queries is
// known, is a control variate: the estimate is the mean of the few, moved by as much as they differ from the many.
RecallCurve::Estimate RecallCurve::estimate_of_column(std::size_t column, const Shares& shares) const
{
    const Estimate own = mean_of_column(column, shares);
    const Estimate& before = estimates_[column];
    if (own.queries == 0 || own.queries >= before.queries || nearer_first_) return own;
    MeanOf earlier;
    double products = 0;
    for (std::size_t q = 0; q < shares.size(); ++q) {
        if (shares[q][column] < 0) continue;
        if (shares_[q][column] < 0) return own;
        earlier.add(shares_[q][column]);
        products += static_cast<double>(shares[q][column]) * shares_[q][column];
    }
    const auto n = static_cast<double>(own.queries);
    const Estimate few = earlier.estimate();
    if (few.variance <= 0) return own;
    const double covariance = (products / n - own.mean * few.mean) / n;  // of the means
    const double slope = std::clamp(covariance / few.variance, 0.0, 1.0);
    const double rest = own.variance - 2 * slope * covariance + slope * slope * few.variance;
    return {own.mean + slope * (before.mean - few.mean), std::max(0.0, rest) + slope * slope * before.variance,
            before.queries};
}

void RecallCurve::add(std::int64_t effort, const Shares& shares)
{
    constexpr double one_sided_95 = 1.645;
    if (points_.count == Calibration::capacity) return;
    CalibrationPoint& point = points_.points[points_.count++];
    point.effort = effort;
    for (std::size_t k = 0; k < 4; ++k) {
        const Estimate estimate = estimate_of_column(k, shares);
        estimates_[k] = estimate;
        const double bound = estimate.mean - one_sided_95 * std::sqrt(estimate.variance);
        point.recall[k] = estimate.queries == 0 ? -1 : static_cast<float>(std::clamp(bound, 0.0, 1.0));
    }
    shares_ = shares;
    for (std::size_t k = 3; nearer_first_ && k > 0; --k) {
        if (point.recall[k] >= 0) point.recall[k - 1] = std::max(point.recall[k - 1], point.recall[k]);
    }
}

void RecallCurve::add_complete(std::int64_t effort, const Shares& shares)
{
    if (points_.count == Calibration::capacity) return;
    add(effort, shares);
    for (float& recall : points_.points[points_.count - 1].recall) {
        if (recall >= 0) recall = 1;
    }
}

Calibration RecallCurve::calibration() const
{
    Calibration result = points_;
    result.sample = static_cast<std::uint32_t>(queries_);
    for (std::uint32_t i = 1; i < result.count; ++i) {
        for (std::size_t k = 0; k < 4; ++k) {
            result.points[i].recall[k] = std::max(result.points[i].recall[k], result.points[i - 1].recall[k]);
        }
    }
    return result;
}

}  // namespace pgwarp
