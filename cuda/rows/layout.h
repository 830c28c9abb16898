// The layout of resident rows in each form. A position is a row's place in device memory. Positions come in whole
// groups of 32, and those without a row are padding. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp::cuda::rows
{

inline constexpr std::uint32_t group_rows = 32;      // rows that a warp reads together
inline constexpr std::uint32_t group_codes = 16;     // codes of a row that a lane reads together: 16 bytes
inline constexpr std::uint32_t no_row = 0xffffffff;  // row number of a padding position

PGWARP_HOST_DEVICE constexpr std::uint32_t whole_groups(std::uint32_t rows)
{
    return (rows + group_rows - 1) / group_rows * group_rows;
}

// The offset of a code in the interleaved layout [groups of 32 rows][groups of 16 codes][32 rows][16 codes].
PGWARP_HOST_DEVICE constexpr std::size_t code_offset(std::uint32_t position, std::uint32_t part,
                                                     std::uint32_t code_groups)
{
    const std::size_t block = static_cast<std::size_t>(position / group_rows) * code_groups + part / group_codes;
    return (block * group_rows + position % group_rows) * group_codes + part % group_codes;
}

// Rows of a half matrix are padded to whole 16-byte pieces.
PGWARP_HOST_DEVICE constexpr std::uint32_t half_stride(std::uint32_t dimensions)
{
    return (dimensions + 7) / 8 * 8;
}

// Rows of bytes lie in pieces of 16 dimensions. Within a piece the dimensions are permuted so that the four bytes that
// ldmatrix hands to a lane are the four elements that mma takes from it (m16n8k16, operand B).
PGWARP_HOST_DEVICE constexpr std::uint32_t byte_stride(std::uint32_t dimensions)
{
    return (dimensions + 15) / 16 * 16;
}

// The offset of a dimension's byte in its row.
PGWARP_HOST_DEVICE constexpr std::uint32_t byte_place(std::uint32_t dimension)
{
    const std::uint32_t within = dimension % 16;
    return dimension - within + within % 8 / 2 * 4 + within / 8 * 2 + within % 2;
}

}  // namespace pgwarp::cuda::rows
