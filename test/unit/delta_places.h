// Where the rows of a test are: the first ones in its index, the others in the logs of its delta, in turns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

#include "engine/mirror/mirror.h"

namespace pgwarp::test
{

inline Tid tid_of(std::size_t row)
{
    return {static_cast<std::uint32_t>(row / 8), static_cast<std::uint16_t>(row % 8 + 1), 0};
}
inline std::size_t row_of(const Tid& tid)
{
    return std::size_t{tid.block} * 8 + tid.offset - 1;
}

struct DeltaPlaces {
    static constexpr std::uint64_t first_position = 1000;  // of every log

    std::size_t indexed;    // rows of the index
    std::size_t turn_rows;  // rows that go to a log before the next one has its turn

    std::uint32_t log_of(std::size_t row) const
    {
        return static_cast<std::uint32_t>((row - indexed) / turn_rows % delta_log_count);
    }
    // An ordinal as in SearchCursor.
    std::uint64_t place_of(std::size_t row) const
    {
        if (row < indexed) return row;
        const std::size_t turn = (row - indexed) / turn_rows;
        return delta_ordinal(log_of(row),
                             first_position + turn / delta_log_count * turn_rows + (row - indexed) % turn_rows);
    }
    // The marks of dead rows, wherever they are among `rows`.
    Tombstones tombstones(const std::set<std::size_t>& dead, std::size_t rows) const
    {
        Tombstones stones;
        std::array<std::uint64_t, delta_log_count> next;
        next.fill(first_position);
        stones.rows.resize((indexed + 63) / 64);
        for (std::size_t row = 0; row < rows; ++row) {
            const std::uint64_t position = row < indexed ? 0 : next[log_of(row)]++;
            if (!dead.contains(row)) continue;
            if (row < indexed) {
                set_bit(stones.rows, row);
            } else {
                stones.log_entries[log_of(row)].push_back(position);
            }
        }
        return stones;
    }
};

}  // namespace pgwarp::test
