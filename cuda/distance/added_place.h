// The places of bytes that the matrix kernels add to scores (AddedBytes, proposals.h), for code without CUDA too.
#pragma once

#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda
{

// The place of a position among the bytes of its query, both counted from the begin of a tile of 128: a thread reads
// the bytes of its 32 products as two vectors.
PGWARP_HOST_DEVICE constexpr std::uint32_t added_place(std::uint32_t position)
{
    const std::uint32_t column = position % 128;
    return position - column + column % 8 / 2 * 32 + column / 8 * 2 + column % 2;
}

}  // namespace pgwarp::cuda
