// Calibration at build: how the recall of sample rows grows with effort, for k = 1, 10, 100, 1,000.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "index/index.h"

namespace pgwarp
{

// The nearest rows of each sample row, itself left out: [sample][at most 1,000], nearest first, in full precision.
std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel);

// Loads a searcher with what a finished builder made, in pieces of at most `step` bytes.
void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step = 1U << 20);

// Recall of one query at each measured k: found(rank) tells whether the true neighbour of that rank (0 = nearest) was
// found at position limit k. Judged over queries by the lower confidence bound (one-sided 95 %, normal approximation).
class RecallCurve
{
public:
    // nearer_first: at equal effort a nearer neighbour is found no less often than a farther one, so what is known of a
    // larger k holds for smaller ones, and many neighbours of few queries tell more than the nearest of each. Then one
    // more query that missed a neighbour counts with those measured: that all of a few were found is no certainty.
    explicit RecallCurve(std::size_t queries, bool nearer_first = false)
        : queries_(queries), nearer_first_(nearer_first)
    {
    }
    // shares[k] = share of the k true neighbours found by one query, negative when k isn't measured.
    void add(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries);
    // Of an effort that finds everything, whatever the query.
    void add_complete(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries);
    // Points in growing effort; recall made monotone.
    Calibration calibration() const;

private:
    std::size_t queries_;
    bool nearer_first_;
    Calibration points_;
};

}  // namespace pgwarp
