// Calibration at build: how the recall of sample rows grows with effort, for k = 1, 10, 100, 1,000.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp
{

// The nearest rows of each sample row, itself left out: [sample][at most `depth`], nearest first, in full precision.
// Rows of `left_out` are nobody's neighbours.
std::vector<std::vector<std::uint32_t>> calibration_truth(Metric metric, std::span<const float> rows,
                                                          std::size_t dimensions,
                                                          const std::vector<std::uint32_t>& sample, ThreadPool& pool,
                                                          const CancelToken* cancel, RowBitmap left_out = {},
                                                          std::size_t depth = Calibration::ks[3]);

// The k at which a column of Calibration::ks is measured: from the first that it serves to its own in so many steps,
// each larger by the same factor than the one before. Of all k that ask the engine for equally many results, the
// largest stands for them. None where all of them are at least as many as there are rows: such searches find all.
std::vector<std::uint32_t> measured_ks(std::size_t column, std::size_t rows, ResultKind kind, std::size_t steps);

// Loads a searcher with what a finished builder made, in pieces of at most `step` bytes.
void feed_searcher(const Builder& builder, Searcher& searcher, ThreadPool& pool, std::uint64_t step = 1U << 20);

// How recall grows with effort, in the columns of Calibration::ks. Judged over queries by the lower confidence bound
// (one-sided 95 %, normal approximation).
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
    // shares[column] = share of the true neighbours that one query found, at the k that is found worst among those that
    // the column serves; the same k for all queries and, but for chance, no smaller share at a larger effort. Negative
    // when the column isn't measured.
    void add(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries);
    // Of an effort that finds everything, whatever the query.
    void add_complete(std::int64_t effort, const std::vector<std::array<float, 4>>& shares_of_queries);
    // Points in growing effort. More effort finds no less: each point takes the largest recall up to its own.
    Calibration calibration() const;

private:
    std::size_t queries_;
    bool nearer_first_;
    Calibration points_;
};

}  // namespace pgwarp
