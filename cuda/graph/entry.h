// An entry of a search's queue: score, row number and expanded flag of a row in one number, ordered by (score, row).
// Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <cstdint>

#include "select/order_bits.h"

namespace pgwarp::cuda::graph
{

// Bits 63-32: key of the score; 31-1: row; 0: expanded.
using Entry = std::uint64_t;

inline constexpr Entry no_entry = ~Entry{0};            // after all others; counts as expanded
inline constexpr std::uint32_t most_rows = 0x7fffffff;  // row numbers take 31 bits

PGWARP_HOST_DEVICE constexpr std::uint32_t smaller(std::uint32_t a, std::uint32_t b)
{
    return a < b ? a : b;
}

// Returns no_entry for scores that are infinite or NaN.
PGWARP_HOST_DEVICE inline Entry make_entry(float score, std::uint32_t row)
{
    const std::uint32_t key = score_key(score + 0.0F);
    return key == no_key ? no_entry : Entry{key} << 32 | Entry{row} << 1;
}

PGWARP_HOST_DEVICE inline std::uint32_t row_of(Entry entry)
{
    return static_cast<std::uint32_t>(entry) >> 1;
}
PGWARP_HOST_DEVICE inline bool is_expanded(Entry entry)
{
    return (entry & 1) != 0;
}
// Equal for entries of the same row and score, expanded or not, and ordered as entries are.
PGWARP_HOST_DEVICE inline Entry place_of(Entry entry)
{
    return entry | 1;
}

PGWARP_HOST_DEVICE inline bool lies_before(Entry entry, Entry end)
{
    return place_of(entry) < place_of(end);
}

// begin plus the number of the sorted entries[begin, end) that come before `entry`, which must not be expanded.
PGWARP_HOST_DEVICE inline std::uint32_t lower_bound_of(const Entry* entries, std::uint32_t begin, std::uint32_t end,
                                                       Entry entry)
{
    // Three probes at a time, as each has a long latency, and without branches, so that the threads of a warp do not
    // diverge. The result is in [begin, begin + left].
    for (std::uint32_t left = end - begin; left > 0;) {
        const std::uint32_t step = left / 4 + 1;
        const auto is_before = [&](std::uint32_t probe) {
            const std::uint32_t at = probe * step;
            return at <= left && entries[begin + (at <= left ? at : left) - 1] < entry ? 1U : 0U;
        };
        const std::uint32_t passed = (is_before(1) + is_before(2) + is_before(3)) * step;
        begin += passed;
        left = left - passed < step - 1 ? left - passed : step - 1;
    }
    return begin;
}

}  // namespace pgwarp::cuda::graph
