// The choice of an effort from a stored calibration, which backends (planning, EXPLAIN) and the engine share; and the
// arrays that a calibrating build needs.
#pragma once

#include <algorithm>

#include "protocol/format.h"

namespace pgwarp
{

// A calibrating build gets these arrays besides those of its index (src/methods/METHOD/calibrator.h). "calib_row" u32
// [count][1]: live rows that serve as queries, ascending and evenly spread over all rows. "calib_query" u8
// [count][bytes of a row]: those rows as the index stores them. "calib_dead" u64 [(rows + 63) / 64][1]: bit i of word i
// / 64 is set for a dead row i; without this array no row is dead.
// Where rows are lists, "calib_query" u32 [words][1] holds their words, and "calib_offset" u64 [count + 1][1] says
// where each begins.
inline constexpr char array_calib_row[] = "calib_row";
inline constexpr char array_calib_query[] = "calib_query";
inline constexpr char array_calib_offset[] = "calib_offset";
inline constexpr char array_calib_dead[] = "calib_dead";
inline constexpr std::uint32_t most_calibration_queries = 500;

// Returns the number of results that a search for `k` rows requests from the engine. Where results have bounds, the
// last few may be out of order; where they are approximate, the backend ranks them by the heap's rows.
inline std::uint32_t search_width(ResultPromise promise, std::uint32_t k)
{
    std::uint64_t width = k;
    if (promise.kind == ResultKind::approximate) width = std::max(std::uint64_t{4} * k, std::uint64_t{64});
    if (promise.kind == ResultKind::lower_bound) width = std::uint64_t{k} + (promise.rounded ? 2 : k / 8 + 3);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(width, max_k));
}

// An effort, and the recall that the calibration gives for it.
struct EffortChoice {
    std::int64_t effort;
    float attained;  // recall of the curve at that effort; negative when the index has no calibration
    bool reached;    // attained >= asked
};

// Returns the smallest measured effort whose recall at k reaches `recall`; if none does, the one with the highest
// recall. For k between two measured ones the larger is used (recall falls with k at equal effort).
inline EffortChoice choose_effort(const Calibration& calibration, std::uint32_t k, double recall)
{
    EffortChoice choice{0, -1.0F, false};
    std::uint32_t column = 0;
    while (column < 3 && Calibration::ks[column] < k) ++column;
    for (std::uint32_t i = 0; i < calibration.count; ++i) {
        const CalibrationPoint& point = calibration.points[i];
        std::uint32_t measured = column;
        while (measured > 0 && point.recall[measured] < 0) --measured;
        if (i > 0 && point.recall[measured] <= choice.attained) continue;
        choice.effort = point.effort;
        choice.attained = point.recall[measured];
        if (choice.attained >= recall) {
            choice.reached = true;
            return choice;
        }
    }
    return choice;
}

}  // namespace pgwarp
