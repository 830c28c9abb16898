// How recall grows with effort: the curve that is stored with an index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/format.h"

namespace pgwarp
{

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
