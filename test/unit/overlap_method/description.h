// What backends know of the method: its number and its description.
#pragma once

#include "methods/description.h"

namespace pgwarp::test
{

inline constexpr auto overlap_method = static_cast<Method>(15);

extern const MethodDescription overlap_description;

}  // namespace pgwarp::test
