// The proof of an exact answer among sparse vectors. A score is an upper bound of a pair's value, in the space of the
// stored halves: larger is nearer. With x the query and y the row (a unit vector under cosine):
//     score = scale * (x.y [- |y|^2 / 2 under L2]) + what the bytes of the lists are too large, +- errors.
// The products of columns are those of halves; those of lists are bytes, rounded upwards, which never make a score too
// small.
#pragma once

#include <cmath>
#include <cstdint>

#include "numeric/host_device.h"
#include "numeric/metric.h"

namespace pgwarp::cuda::matchcount
{

// Bounds over all rows. "Stored" is the space of the halves.
struct SparseRowBounds {
    Metric metric = Metric::inner_product;
    double scale = 1;         // from the rows' space to the stored one
    double residual = 0;      // largest |y - y'| over the columns, y' its halves; stored space
    double norm = 0;          // largest |y'|, stored space
    double largest_norm = 0;  // of the rows, over all elements; 1 under cosine
    double summation = 0;     // a sum of products is off by at most this times the product of the norms
};

// Bounds of one query.
struct SparseQueryBound {
    double norm = 0;      // |x'|, x' the halves of its columns; the query's own space
    double residual = 0;  // |x - x'| over the columns; the same space
    double own_norm = 0;  // |x|, over all elements
    double lists = 0;     // the largest summand of lists; stored space
};

// The score before its errors of a pair at this canonical distance.
PGWARP_HOST_DEVICE inline double sparse_score_of(const SparseRowBounds& rows, const SparseQueryBound& query,
                                                 double distance)
{
    switch (rows.metric) {
        case Metric::l2:
            return rows.scale * (query.own_norm * query.own_norm - distance * distance) / 2;
        case Metric::cosine:
            return rows.scale * query.own_norm * (1 - distance);
        default:
            return -rows.scale * distance;
    }
}

// The least score of a row whose canonical distance is at most `distance`; NaN where that is NaN.
PGWARP_HOST_DEVICE inline double least_sparse_score(const SparseRowBounds& rows, const SparseQueryBound& query,
                                                    double distance)
{
    const double halves = query.residual * (rows.norm + rows.residual) + query.norm * rows.residual +
                          rows.summation * query.norm * rows.norm;
    // The sum of base, products and lists is rounded a few times.
    const bool has_base = rows.metric == Metric::l2;
    const double base = has_base ? rows.scale * rows.largest_norm * rows.largest_norm / 2 : 0;
    const double floats = 0x1p-21 * (query.norm * rows.norm + base + query.lists) + 0x1p-120;
    // Canonical distances and norms are sums in float64.
    const double square = query.own_norm * query.own_norm;
    const double doubles = rows.scale * (query.own_norm * rows.largest_norm + (has_base ? square : 0)) + 2 * base +
                           (has_base ? rows.scale * distance * distance : 0);
    return sparse_score_of(rows, query, distance) - halves - floats - 0x1p-34 * doubles;
}

}  // namespace pgwarp::cuda::matchcount
