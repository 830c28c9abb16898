// Choosing an effort from a stored calibration: used by backends (planning, EXPLAIN) and the engine alike.
#pragma once

#include "protocol/format.h"

namespace pgwarp
{

struct EffortChoice {
    std::int64_t effort;
    float attained;  // recall of the curve at that effort; negative when the index has no calibration
    bool reached;    // attained >= asked
};

// The smallest measured effort whose recall at k reaches `recall`; the largest when none does. For k between two
// measured ones the larger is used (recall falls with k at equal effort).
inline EffortChoice choose_effort(const Calibration& calibration, std::uint32_t k, double recall)
{
    EffortChoice choice{0, -1.0F, false};
    std::uint32_t column = 0;
    while (column < 3 && Calibration::ks[column] < k) ++column;
    for (std::uint32_t i = 0; i < calibration.count; ++i) {
        const CalibrationPoint& point = calibration.points[i];
        std::uint32_t measured = column;
        while (measured > 0 && point.recall[measured] < 0) --measured;
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
