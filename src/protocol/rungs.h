// The sequence of rows that an approximate index has for a query, whatever LIMIT asks for it: a ladder of rungs. The
// first 10 rows are those that a search for 10 finds, ranks 11 to 100 come from a search for 100, ranks 101 to 1,000
// from one for 1,000, and all behind from an exact continuation. The rows of a rung are frozen once they are ranked: a
// deeper search adds rows behind them, and what it finds that belongs before them is left out. So the answer to a small
// LIMIT is the beginning of the answer to a larger one.
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

// Ranks at which rungs end: the k beyond 1 at which indexes are calibrated.
inline constexpr std::uint32_t rung_ends[max_rungs] = {Calibration::ks[1], Calibration::ks[2], Calibration::ks[3]};

// How many rungs the first `wanted` rows lie on. More rows than the last one ends with are for a continuation.
inline std::uint32_t rungs_of(std::uint32_t wanted)
{
    std::uint32_t count = 1;
    while (count < max_rungs && rung_ends[count - 1] < wanted) ++count;
    return count;
}

// The recall that the rows up to the end of a rung need before any is frozen, so that `recall` is left: a row that an
// earlier rung missed is left out for good. Each rung before misses at most the share 1 - recall of its rows.
inline double recall_before_freezing(std::uint32_t rung, double recall)
{
    if (rung == 0) return recall;
    const double frozen = static_cast<double>(rung_ends[rung - 1]) / rung_ends[rung];
    return recall + (1 - recall) * frozen * recall;
}

// Describes the search of a rung: as many results as it takes to rank its rows, and the effort for the recall asked
// for. `choice` tells whether the calibration reaches that.
inline SearchRung choose_rung(const Calibration& calibration, ResultPromise promise, std::uint32_t rung, double recall,
                              EffortChoice* choice)
{
    *choice = choose_effort(calibration, rung_ends[rung], recall_before_freezing(rung, recall));
    choice->reached = choice->attained >= recall;
    return {choice->effort, search_width(promise, rung_ends[rung]), 0};
}

}  // namespace pgwarp
