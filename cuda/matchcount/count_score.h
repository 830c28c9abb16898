// Counts as scores for k-selection, which takes the smallest floats: the larger the count, the smaller the score. The
// map keeps all 31 bits of a count.
#pragma once

#include <cstdint>

#include "select/order_bits.h"

namespace pgwarp::cuda::matchcount
{

namespace detail
{
// Orders of -0 and of the largest finite float.
inline constexpr std::uint32_t minus_zero = 0x7fffffffU;
inline constexpr std::uint32_t largest_finite = 0xff7fffffU;
}  // namespace detail

// count < 2^31.
PGWARP_HOST_DEVICE inline float score_of_count(std::uint32_t count)
{
    std::uint32_t order = detail::largest_finite - count;
    if (order <= detail::minus_zero) --order;  // selection returns -0 as +0
    return float_of_order(order);
}

PGWARP_HOST_DEVICE inline std::uint32_t count_of_score(float score)
{
    std::uint32_t order = order_of(score);
    if (order < detail::minus_zero) ++order;
    return detail::largest_finite - order;
}

}  // namespace pgwarp::cuda::matchcount
