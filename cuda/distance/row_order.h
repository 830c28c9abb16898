// The order in which search goes over rows. Rows are often inserted cluster by cluster; a prefix of the positions must
// be a fair sample of the rows, so that its thresholds hold for the rest.
#pragma once

#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda
{

// Position p belongs to row row_of(p): groups of `group` rows, in the order of multiples of `multiplier` modulo their
// number. Positions whose row_of() is `rows` or more have no row.
struct RowOrder {
    std::uint32_t rows = 0;
    std::uint32_t group = 1;
    std::uint32_t groups = 0;
    std::uint32_t multiplier = 1;  // without a common factor with groups

    PGWARP_HOST_DEVICE std::uint32_t row_of(std::uint32_t position) const
    {
        const std::uint64_t index = position / group;
        if (index >= groups) return rows;
        return static_cast<std::uint32_t>(index * multiplier % groups) * group + position % group;
    }
    std::uint32_t positions() const { return groups * group; }
};

// group: 1 where search reads copies of rows, larger where it reads rows in place.
RowOrder make_row_order(std::uint32_t rows, std::uint32_t group);

}  // namespace pgwarp::cuda
