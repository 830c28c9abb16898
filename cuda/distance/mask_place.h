// The places of positions in masks (RowMasks, proposals.h), for code without CUDA too. The products of a tile of 128
// positions lie so in the registers of the matrix kernels that a thread has those of 32 positions; they are a group.
#pragma once

#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda
{

// A mask has a word for each group; `word` counts those of all positions.
struct MaskPlace {
    std::uint32_t word;
    std::uint32_t bit;
};

PGWARP_HOST_DEVICE constexpr MaskPlace mask_place(std::uint32_t position)
{
    const std::uint32_t column = position % 128;
    return {position / 128 * 4 + column % 8 / 2, column / 8 * 2 + column % 2};
}

// The position whose mask_place() this is.
PGWARP_HOST_DEVICE constexpr std::uint32_t masked_position(std::uint32_t word, std::uint32_t bit)
{
    return word / 4 * 128 + bit / 2 * 8 + word % 4 * 2 + bit % 2;
}

}  // namespace pgwarp::cuda
