// The search of one query among sparse vectors. Every answer is exact.
//
// The score of a row is a base, which depends on the row alone, and an addend for each term that it shares with the
// query. The nearer a row, the larger its score:
//     metric         base          addend of values q and x    score of the distance d
//     inner product  0             q x                         -d
//     cosine         0             q x / |x|                   |q| (1 - d)
//     L2             -|x|^2 / 2    q x                         (|q|^2 - d^2) / 2
//     L1             -|x|_1        |q| + |x| - |q - x|         |q|_1 - d
// Scores are added up in float32, a slice of rows at a time. Their error is bounded; rows whose scores may be those of
// results get their canonical distances.
#pragma once

#include <limits>
#include <vector>

#include "methods/matchcount/sparse_index.h"
#include "methods/method.h"

namespace pgwarp::matchcount
{

struct SparseQuery {
    SparseView vector;
    std::uint32_t k = 0;
    RowBitmap dead;
    RowResult after = before_all;  // results up to this one, in order of (distance, row), are left out
    double within = std::numeric_limits<double>::infinity();  // rows that are farther are left out
    const CancelToken* cancel = nullptr;
};

// Returns the k nearest live rows behind `after` and within `within`, by (distance, row). Rows without a common term
// are among them; those without a distance (zero vectors under cosine) are not. Throws Cancelled.
std::vector<RowResult> search_sparse(const SparseIndex& index, const SparseQuery& query, ThreadPool& pool);

}  // namespace pgwarp::matchcount
