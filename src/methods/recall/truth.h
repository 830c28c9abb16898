// The true neighbours of sample queries, for measuring recall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// Finds the nearest rows of queries among rows that come in pieces.
class NearestOfQueries
{
public:
    // queries [count][dimensions] outlive this. `wanted`: number of rows for each.
    NearestOfQueries(Metric metric, std::span<const float> queries, std::size_t dimensions, std::size_t wanted);
    // Compares rows [count][dimensions], the first of which has the number `first`, except rows of `left_out`. norms:
    // of squared_norms(), not read for bits.
    void compare(const float* rows, const float* norms, std::size_t count, std::size_t first, RowBitmap left_out);
    // Returns the nearest rows of a query by (score, row). Call once for each query.
    std::vector<Candidate> take(std::size_t query) { return best_[query].take_sorted(); }

private:
    Metric metric_;
    std::span<const float> queries_;
    std::size_t dimensions_;
    std::vector<TopK> best_;
    std::vector<float> tile_;
};

// Returns the nearest rows of each sample row, without itself and rows of `left_out`: [sample][at most `depth`],
// nearest first, in full precision.
std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, RowBitmap left_out = {},
                                                          std::size_t depth = Calibration::ks[3]);

// Returns the distance of each true neighbour, for rows of bits, whose distances are often equal; empty for other rows.
// rows and queries [count][dimensions].
std::vector<std::vector<double>> distances_of_truth(Metric metric, std::span<const float> rows, std::size_t dimensions,
                                                    std::span<const float> queries,
                                                    const std::vector<std::vector<std::uint32_t>>& truth);

}  // namespace pgwarp
