// The positions of the rows of an inverted file: list-major, each list padded to whole groups. Free of CUDA, so that
// tests on the CPU cover it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/layout.h"

namespace pgwarp::cuda::ivfadc
{

using namespace rows;  // an inverted file consists of resident rows in lists

struct ListLayout {
    std::vector<std::uint32_t> begin;        // [lists], a multiple of 32
    std::vector<std::uint32_t> length;       // [lists], rows
    std::vector<std::uint32_t> position_of;  // [rows]
    std::vector<std::uint32_t> row_at;       // [positions], no_row in padding
    // most_slots[p] = positions of the p longest lists: an upper bound for any p probes.
    std::vector<std::uint64_t> most_slots;

    // Rows keep their order within a list. Throws BadRequest for a list that does not exist, or too many rows.
    static ListLayout arrange(std::span<const std::uint32_t> list_of_row, std::size_t lists);
};

}  // namespace pgwarp::cuda::ivfadc
