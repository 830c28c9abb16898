// Where the rows of an inverted file lie: list-major positions, each list padded to whole groups.
// Free of CUDA, so that it is tested without a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/layout.h"

namespace pgwarp::cuda::ivfadc
{

using namespace rows;  // an inverted file is resident rows in lists: their words are its own

struct ListLayout {
    std::vector<std::uint32_t> begin;        // [lists], a multiple of 32
    std::vector<std::uint32_t> length;       // [lists], rows
    std::vector<std::uint32_t> position_of;  // [rows]
    std::vector<std::uint32_t> row_at;       // [positions], no_row in padding
    // most_slots[p] = positions of the p longest lists: what any p probes can need.
    std::vector<std::uint64_t> most_slots;

    // Rows keep their order within a list. Throws BadRequest for a list that does not exist.
    static ListLayout arrange(std::span<const std::uint32_t> list_of_row, std::size_t lists);
};

}  // namespace pgwarp::cuda::ivfadc
