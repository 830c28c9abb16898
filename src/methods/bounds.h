// Bounds of the operator's distance to a heap row, derived from the canonical distance to the stored row.
#pragma once

#include <algorithm>
#include <cmath>

#include "numeric/metric.h"

namespace pgwarp
{

// Unit vectors are rounded to float32, stored rows and queries alike. Each element is off by at most half a unit in the
// last place, so the cosine of two is off by less than this.
inline constexpr double cosine_slack = 4e-7;
// Relative rounding error of the arithmetic of bounds.
inline constexpr double bound_rounding = 1e-12;

// Returns the canonical distance to a decoded row. Rows of a cosine index were of unit length before they were coded.
inline double decoded_distance(Metric metric, const float* query, const float* row, std::size_t dimensions)
{
    return metric == Metric::cosine ? 1 - canonical_dot(query, row, dimensions)
                                    : canonical_distance(metric, query, row, dimensions);
}

// Returns a lower bound of the operator's distance when the stored row lies within `error` (L2) of the indexed one.
// `value`: the canonical distance to the stored row, for cosine 1 - dot.
inline double lower_bound(Metric metric, double value, double error, double query_norm)
{
    switch (metric) {
        case Metric::l2:
            return std::max(0.0, value * (1 - bound_rounding) - error);
        case Metric::inner_product:
            return value - query_norm * error - std::fabs(value) * bound_rounding;
        case Metric::cosine:
            return value - error - cosine_slack;
        case Metric::l1:
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            return value;
    }
    return value;
}

// Returns the largest difference between the operator's distance and its lower_bound(), apart from rounding in double
// precision.
inline double bound_width(Metric metric, double error, double query_norm)
{
    switch (metric) {
        case Metric::l2:
            return 2 * error;
        case Metric::inner_product:
            return 2 * query_norm * error;
        case Metric::cosine:
            return 2 * (error + cosine_slack);
        case Metric::l1:
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            return 0;
    }
    return 0;
}

}  // namespace pgwarp
