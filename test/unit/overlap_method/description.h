// What backends know of the method: its number and its description.
#pragma once

#include "methods/description.h"

namespace pgwarp::test
{

inline constexpr auto overlap_method = static_cast<Method>(15);
extern const MethodDescription overlap_description;

// The same, but merges have the engine encode new rows.
inline constexpr auto encoded_overlap_method = static_cast<Method>(14);
extern const MethodDescription encoded_overlap_description;

}  // namespace pgwarp::test
