// Answers by a description which rows a method compares by which metric.
#pragma once

#include <algorithm>

#include "methods/description.h"

namespace pgwarp
{

// Whether the method compares rows of these elements by this metric.
inline bool compares(const MethodDescription& method, ElementType element, Metric metric)
{
    return std::any_of(method.comparisons.begin(), method.comparisons.end(),
                       [=](const Comparison& known) { return known.element == element && known.metric == metric; });
}

}  // namespace pgwarp
