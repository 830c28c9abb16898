#include "methods/recall/gain.h"

namespace pgwarp
{

bool has_stopped_gaining(const Calibration& so_far, const GainRule& rule)
{
    constexpr float noticeable_gain = 0.002F;
    if (so_far.count <= rule.steps) return false;
    const CalibrationPoint& before = so_far.points[so_far.count - 1 - rule.steps];
    const CalibrationPoint& now = so_far.points[so_far.count - 1];
    if (before.effort < rule.from) return false;
    for (std::size_t column = 0; column < rule.columns; ++column)
        if (now.recall[column] >= before.recall[column] + noticeable_gain) return false;
    return true;
}

}  // namespace pgwarp
