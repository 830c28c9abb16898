// The groups of 32 slots of a query's lists: the first position of each, and its list's constant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Writes the groups of one list, `rows` slots from `slot` on. Called by `lanes` threads with lane = 0 .. lanes - 1.
__device__ inline void write_groups(const GroupArrays& out, std::size_t query, std::uint32_t slot, std::uint32_t rows,
                                    std::uint32_t list_begin, float constant, std::uint32_t lane, std::uint32_t lanes)
{
    if (out.position == nullptr) return;
    const std::size_t first = query * out.stride + slot / group_rows;
    for (std::uint32_t group = lane; group < rows / group_rows; group += lanes) {
        out.position[first + group] = list_begin + group * group_rows;
        out.constant[first + group] = constant;
    }
}

}  // namespace pgwarp::cuda::ivfadc
