// The least error of line quantization: with all pairs of centroids as lines, and lambda not rounded.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "methods/pqtree/lines.h"

namespace pgwarp::bench::pqtree
{

// The squared error of the nearest projection to a line through two of the centroids, whose distances to a row are
// given: by equation 9 of the paper, with lambda = (b^2 + c^2 - a^2) / 2 c^2. between: [k1][k1] squared distances.
inline double nearest_pair_error(std::span<const double> to, std::span<const double> between)
{
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < to.size(); ++i) {
        for (std::size_t j = i + 1; j < to.size(); ++j) {
            const double length = between[i * to.size() + j];
            const double along = to[i] + length - to[j];
            least = std::min(least, length > 0 ? to[i] - along * along / (4 * length) : to[i]);
        }
    }
    return std::max(least, 0.0);
}

// Returns the mean squared error of rows [count][dimensions], summed over the line parts.
inline double all_pairs_error(const ProductTree& tree, const LineShape& lines, std::span<const float> rows)
{
    const std::size_t dimensions = tree.shape.dimensions;
    const std::size_t k1 = tree.shape.k1;
    const auto count = static_cast<double>(rows.size() / dimensions);
    const auto centroid = [&](std::size_t number) { return tree.level1.data() + number * dimensions; };
    std::vector<double> between(k1 * k1);
    std::vector<double> to(k1);
    double mean = 0;
    for (std::size_t number = 0; number < lines.line_parts; ++number) {
        const auto squared = [&](const float* a, const float* b) {
            double sum = 0;
            for (std::size_t d = lines.begin(number); d < lines.begin(number + 1); ++d)
                sum += (double{a[d]} - b[d]) * (double{a[d]} - b[d]);
            return sum;
        };
        for (std::size_t i = 0; i < k1 * k1; ++i) between[i] = squared(centroid(i / k1), centroid(i % k1));
        for (std::size_t row = 0; row < rows.size(); row += dimensions) {
            for (std::size_t i = 0; i < k1; ++i) to[i] = squared(rows.data() + row, centroid(i));
            mean += nearest_pair_error(to, between) / count;
        }
    }
    return mean;
}

}  // namespace pgwarp::bench::pqtree
