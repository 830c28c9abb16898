// The sequence of rows that an approximate index has for a query, independent of LIMIT: a ladder of rungs. The first 10
// rows come from a search for 10, ranks 11 to 100 from a search for 100, ranks 101 to 1,000 from a search for 1,000,
// and all later ranks from an exact continuation. The rows of a rung are frozen once they are ranked: a deeper search
// appends rows, and its results that belong before the frozen rows are left out. So the answer to a small LIMIT is a
// prefix of the answer to a larger one.
#pragma once

#include "protocol/calibration.h"

namespace pgwarp
{

inline constexpr std::uint32_t max_rungs = 3;

// The search of one rung.
struct SearchRung {
    std::int64_t effort;
    std::uint32_t k;         // results
    std::uint32_t reserved;  // 0
};

// Last ranks of the rungs: the values of k above 1 at which indexes are calibrated.
inline constexpr std::uint32_t rung_ends[max_rungs] = {Calibration::ks[1], Calibration::ks[2], Calibration::ks[3]};

// Returns the number of rungs that cover the first `wanted` rows. Rows beyond the last rung come from a continuation.
inline std::uint32_t rungs_of(std::uint32_t wanted)
{
    std::uint32_t count = 1;
    while (count < max_rungs && rung_ends[count - 1] < wanted) ++count;
    return count;
}

// Returns the recall that the search of a rung needs so that the frozen sequence up to the rung's end has `recall`: a
// row that an earlier rung missed is left out for good. Each earlier rung misses at most the share 1 - recall of its
// rows.
inline double recall_before_freezing(std::uint32_t rung, double recall)
{
    if (rung == 0) return recall;
    const double frozen = static_cast<double>(rung_ends[rung - 1]) / rung_ends[rung];
    return recall + (1 - recall) * frozen * recall;
}

// Describes the search of a rung: the number of results that ranking its rows needs, and the effort for the requested
// recall. `choice` tells whether the calibration reaches that recall.
inline SearchRung choose_rung(const Calibration& calibration, ResultPromise promise, std::uint32_t rung, double recall,
                              EffortChoice* choice)
{
    *choice = choose_effort(calibration, rung_ends[rung], recall_before_freezing(rung, recall));
    choice->reached = choice->attained >= recall;
    return {choice->effort, search_width(promise, rung_ends[rung]), 0};
}

}  // namespace pgwarp
