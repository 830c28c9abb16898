// From the canonical distance on stored rows to what may be said of the operator's distance on heap rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "numeric/metric.h"

namespace pgwarp
{

// Unit vectors are rounded to float32 when stored, rows and query alike: each is off by at most half a unit in the last
// place an element, so their cosine by less than this.
inline constexpr double cosine_slack = 4e-7;
// Of the arithmetic of bounds, relative.
inline constexpr double bound_rounding = 1e-12;

// A lower bound of the operator's distance, when the stored row lies within `error` (L2) of the indexed one.
// `value` is the canonical distance to the stored row, for cosine 1 - dot.
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
            return value;
    }
    return value;
}

// How far the operator's distance may lie above its lower_bound(), but for rounding in double precision.
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
            return 0;
    }
    return 0;
}

}  // namespace pgwarp
