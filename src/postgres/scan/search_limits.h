// Values at the ends of what a search may meet.
#pragma once

#include <limits>

#include "protocol/messages.h"

namespace pgwarp
{

inline constexpr double lowest = -std::numeric_limits<double>::infinity();  // before every distance
inline constexpr SearchCursor front = {lowest, 0};                          // before every row
// Of the rates at which rows pass filters: where none has passed, a search must still end.
inline constexpr double lowest_rate = 1e-9;

}  // namespace pgwarp
