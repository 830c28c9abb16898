// Means and confidence bounds of recall, made monotonic in effort.
#include "methods/recall/curve.h"

#include <algorithm>
#include <cmath>

namespace pgwarp
{

void RecallCurve::add(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries)
{
    constexpr double one_sided_95 = 1.645;
    if (points_.count == Calibration::capacity) return;
    CalibrationPoint& point = points_.points[points_.count++];
    point.effort = effort;
    for (std::size_t k = 0; k < 4; ++k) {
        double sum = 0;
        double squares = 0;
        std::size_t measured = 0;
        const auto count = [&](double share) {
            sum += share;
            squares += share * share;
            ++measured;
        };
        for (const auto& shares : shares_of_queries) {
            if (shares[k] >= 0) count(shares[k]);
        }
        if (measured == 0) {
            point.recall[k] = -1;
            continue;
        }
        if (nearer_first_) count(1 - 1.0 / Calibration::ks[k]);
        const double n = static_cast<double>(measured);
        const double mean = sum / n;
        const double deviation = std::sqrt(std::max(0.0, squares / n - mean * mean) / n);
        point.recall[k] = static_cast<float>(std::max(0.0, mean - one_sided_95 * deviation));
    }
    for (std::size_t k = 3; nearer_first_ && k > 0; --k) {
        if (point.recall[k] >= 0) point.recall[k - 1] = std::max(point.recall[k - 1], point.recall[k]);
    }
}

void RecallCurve::add_complete(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries)
{
    if (points_.count == Calibration::capacity) return;
    add(effort, shares_of_queries);
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
