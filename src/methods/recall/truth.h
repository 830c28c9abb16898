// The true neighbours of sample queries, which recall is measured by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// The nearest rows of some queries, of rows that are compared piece by piece.
class NearestOfQueries
{
public:
    // queries [count][dimensions], which stay; `wanted`: rows of each.
    NearestOfQueries(Metric metric, std::span<const float> queries, std::size_t dimensions, std::size_t wanted);
    // Compares rows [count][dimensions], of which the first has the number `first`. Rows of `left_out` are left out.
    // norms: of squared_norms(), unread for bits.
    void compare(const float* rows, const float* norms, std::size_t count, std::size_t first, RowBitmap left_out);
    // Of one query, once: by score, ties by row.
    std::vector<Candidate> take(std::size_t query) { return best_[query].take_sorted(); }

private:
    Metric metric_;
    std::span<const float> queries_;
    std::size_t dimensions_;
    std::vector<TopK> best_;
    std::vector<float> tile_;
};

// The nearest rows of each sample row, itself left out: [sample][at most `depth`], nearest first, in full precision.
// Rows of `left_out` are nobody's neighbours.
std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, RowBitmap left_out = {},
                                                          std::size_t depth = Calibration::ks[3]);

// For rows of bits, whose distances are often equal: the distance of each true neighbour. Empty for other rows.
// rows [count][dimensions], as the queries are.
std::vector<std::vector<double>> distances_of_truth(Metric metric, std::span<const float> rows, std::size_t dimensions,
                                                    std::span<const float> queries,
                                                    const std::vector<std::vector<std::uint32_t>>& truth);

}  // namespace pgwarp
