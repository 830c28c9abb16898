// The proof of an exact answer. A score is the value of a pair in low precision: larger is nearer. lowest_score() is
// the least score of a row whose emitted value is at most `value`. A filter that kept all rows with scores above a
// threshold has missed none of these rows if the least score is larger than the threshold.
//
// Scores of half rows: x and y are the query and the row, centred and scaled by a power of two, x' and y' their fp16
// roundings. l2: x'.y' - |y'|^2 / 2, where | |x' - y'| - |x - y| | <= |x - x'| + |y - y'|. Inner products: x'.y'.
// Scores of float rows: minus the squared distance, the product, minus the L1 distance.
#pragma once

#include <cmath>
#include <cstdint>

#include "methods/bounds.h"
#include "numeric/host_device.h"
#include "numeric/metric.h"

namespace pgwarp::cuda
{

enum class ScoreKind : std::uint8_t { half_l2, half_dot, float_l2, float_dot, float_l1 };

// Bounds over all rows. "Stored" is the space of the half rows (centred, scaled); for float kinds the rows' own space.
struct RowBounds {
    Metric metric = Metric::l2;
    ScoreKind kind = ScoreKind::half_l2;
    double scale = 1;          // from the rows' space to the stored one
    double residual = 0;       // largest |y - y'|, stored space
    double norm = 0;           // largest |y'|, stored space
    double mean_norm = 0;      // |mean|, rows' space
    double smallest_norm = 0;  // of the rows as they are
    double largest_norm = 0;
    double summation = 0;  // a sum of products is off by at most this times the product of the norms
};

// Bounds of one query.
struct QueryBound {
    double norm = 0;      // |x'|: stored space for half_l2, else the query's own
    double residual = 0;  // |x - x'|, in the space of `norm`
    double mean_dot = 0;  // <query, mean>
    double own_norm = 0;  // |query|
};

// The error of sums of `terms` products in single precision, in any order, relative to the product of the norms. Units
// may truncate the terms that they align (tensor cores before Hopper keep no spare bits), so a term counts twice the
// unit roundoff; the rest covers the partial sums of tensor cores.
PGWARP_HOST_DEVICE inline double summation_error(std::uint32_t terms)
{
    return (1.25 * terms + 32) * 0x1p-23;
}

// The smallest dot product, in the rows' space, of a row with at most this value.
PGWARP_HOST_DEVICE inline double smallest_dot(const RowBounds& rows, const QueryBound& query, double value)
{
    if (rows.metric != Metric::cosine) return -value;
    const double cosine = 1 - (value + cosine_slack) - 1e-11;
    return cosine * query.own_norm * (cosine >= 0 ? rows.smallest_norm * (1 - 1e-11) : rows.largest_norm);
}

PGWARP_HOST_DEVICE inline double lowest_half_l2(const RowBounds& rows, const QueryBound& query, double value)
{
    const double reach = value * rows.scale * (1 + 1e-11) + query.residual + rows.residual;
    const double row_norm = fmin(rows.norm, query.norm + reach);
    const double product = query.norm * row_norm;
    const double rounding = rows.summation * product + 0x1p-22 * (product + row_norm * row_norm);
    const double square = query.norm * query.norm;
    return 0.5 * (square - reach * reach) - rounding - 1e-11 * (square + reach * reach);
}

PGWARP_HOST_DEVICE inline double lowest_half_dot(const RowBounds& rows, const QueryBound& query, double value)
{
    const double dot = smallest_dot(rows, query, value);
    const double error = query.residual * (rows.norm + rows.residual) + query.norm * rows.residual +
                         (rows.summation + 0x1p-22) * query.norm * rows.norm;
    const double doubles = fabs(dot) + query.own_norm * (2 * rows.mean_norm + rows.largest_norm);
    return rows.scale * (dot - query.mean_dot) - error - 1e-11 * rows.scale * doubles;
}

// The least score of a row whose emitted value is at most `value` (see the head of this file); NaN where no bound is
// known.
PGWARP_HOST_DEVICE inline double lowest_score(const RowBounds& rows, const QueryBound& query, double value)
{
    switch (rows.kind) {
        case ScoreKind::half_l2:
            return lowest_half_l2(rows, query, value);
        case ScoreKind::half_dot:
            return lowest_half_dot(rows, query, value);
        case ScoreKind::float_l2:
            return -value * value * (1 + rows.summation + 0x1p-21) - 1e-36;
        case ScoreKind::float_dot:
            return smallest_dot(rows, query, value) - (rows.summation + 1e-11) * query.own_norm * rows.largest_norm -
                   1e-36;
        case ScoreKind::float_l1:
            return -value * (1 + rows.summation + 0x1p-21) - 1e-36;
    }
    return 0;
}

// The largest value that a row may have by its halves, for which a search has emitted `bound`, `error` being the
// farthest that a row lies from its halves: lower_bound() of methods/bounds.h turned round. For cosine it is minus a
// product, as for inner products.
PGWARP_HOST_DEVICE inline double value_of_halves(Metric metric, double bound, double error, double query_norm)
{
    if (metric == Metric::l2) return (bound + error) * (1 + 2 * bound_rounding);
    if (metric == Metric::cosine) return bound + error + cosine_slack + 1e-15 * (2 + fabs(bound) + error) - 1;
    const double value = bound + query_norm * error * (1 + 1e-12);
    return value + 2 * bound_rounding * (fabs(bound) + query_norm * error);
}

}  // namespace pgwarp::cuda
