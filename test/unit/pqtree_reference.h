// Distances in some dimensions, in float64: the reference of the parts of pqtree.
#pragma once

#include <cstddef>

namespace pgwarp::test
{

inline double squared(const float* a, const float* b, std::size_t begin, std::size_t end)
{
    double sum = 0;
    for (std::size_t d = begin; d < end; ++d) sum += (double{a[d]} - b[d]) * (double{a[d]} - b[d]);
    return sum;
}

}  // namespace pgwarp::test
