#include "distance/row_order.h"

#include <algorithm>
#include <numeric>

namespace pgwarp::cuda
{

RowOrder make_row_order(std::uint32_t rows, std::uint32_t group)
{
    RowOrder order;
    order.rows = rows;
    order.group = group;
    order.groups = rows / group + (rows % group != 0 ? 1 : 0);
    // The golden ratio spreads multiples most evenly.
    order.multiplier = std::max(1U, static_cast<std::uint32_t>(order.groups * 0.6180339887498949));
    while (std::gcd(order.multiplier, order.groups) > 1) ++order.multiplier;
    return order;
}

}  // namespace pgwarp::cuda
