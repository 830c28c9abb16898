// The end of a curve where more effort gains nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/format.h"

namespace pgwarp
{

// Codes order some true neighbours behind other rows, however many rows are searched: a wider search then finds no
// more.
struct GainRule {
    std::uint32_t steps;      // points of the curve over which the gain is judged
    std::int64_t from;        // the least effort of the first of them
    std::size_t columns = 4;  // of Calibration::ks that are judged, from the first
};

// Whether the recall of no column has risen noticeably over the last steps of the curve.
bool has_stopped_gaining(const Calibration& so_far, const GainRule& rule);

}  // namespace pgwarp
