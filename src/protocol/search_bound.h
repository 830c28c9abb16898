// The largest distance that a search is for, as one of its settings: rows that are farther may be left out, so that a
// search finds fewer than k rows where no more are that near.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "protocol/parameters.h"

namespace pgwarp
{

inline constexpr char setting_within[] = "within";  // the bits of a double

inline constexpr double no_bound = std::numeric_limits<double>::infinity();

// Adds the setting, where there is a bound.
inline void set_within(ParameterList* settings, double within)
{
    if (within < no_bound) settings->set(setting_within, std::bit_cast<std::int64_t>(within));
}

inline double within_of(const ParameterList& settings)
{
    return std::bit_cast<double>(settings.get(setting_within, std::bit_cast<std::int64_t>(no_bound)));
}

}  // namespace pgwarp
