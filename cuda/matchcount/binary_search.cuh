// Binary search in ascending values.
#pragma once

#include <cstdint>

namespace pgwarp::cuda::matchcount
{

// Returns the first index in [0, count) whose value is at least `least`; count where there is none.
template <class Value, class Least>
__device__ inline std::uint32_t first_at_least(const Value* values, std::uint32_t count, Least least)
{
    std::uint32_t first = 0;
    while (count > 0) {
        const std::uint32_t half = count / 2;
        const bool below = values[first + half] < least;
        first = below ? first + half + 1 : first;
        count = below ? count - half - 1 : half;
    }
    return first;
}

}  // namespace pgwarp::cuda::matchcount
