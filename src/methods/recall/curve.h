// The curve of recall by effort that is stored with an index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/format.h"

namespace pgwarp
{

// Recall by effort, in the columns of Calibration::ks. Judged over queries by the lower confidence bound (one-sided 95
// %, normal approximation).
class RecallCurve
{
public:
    // nearer_first: at equal effort a nearer neighbour is found no less often than a farther one, so the recall of a
    // larger k is a lower bound of that of a smaller k, and many neighbours of few queries give a better estimate than
    // the nearest of each. Each column then counts one more query, which missed one neighbour, because a small sample
    // without a miss proves no perfect recall.
    explicit RecallCurve(std::size_t queries, bool nearer_first = false)
        : queries_(queries), nearer_first_(nearer_first)
    {
    }
    // [queries][column]: the share of the true neighbours that a query found, at the k of the column with the lowest
    // recall, the same k for all queries. Negative: the query is not measured in the column.
    using Shares = std::vector<std::array<float, 4>>;
    // Efforts ascend. Shares do not fall with effort, except by chance.
    void add(std::int64_t effort, const Shares& shares);
    // Adds an effort that finds all rows for every query: recall 1.
    void add_complete(std::int64_t effort, const Shares& shares);
    // Points in growing effort. More effort finds no less: each point takes the largest recall up to its own.
    Calibration calibration() const;

    struct Estimate {
        double mean = 0;
        double variance = 0;      // of the mean
        std::size_t queries = 0;  // that the mean rests on
    };

private:
    Estimate mean_of_column(std::size_t column, const Shares& shares) const;
    Estimate estimate_of_column(std::size_t column, const Shares& shares) const;

    std::size_t queries_;
    bool nearer_first_;
    Calibration points_;
    Shares shares_;  // of the last point
    std::array<Estimate, 4> estimates_;
};

}  // namespace pgwarp
