// How rows are cut so that the counters of a block fit into shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "matchcount/keyword_lists.h"

namespace pgwarp::cuda::matchcount
{

// Parts of ranges of rows.
struct CounterParts {
    std::uint32_t rows;      // of a part: a power of two
    std::uint32_t in_range;  // parts
    std::uint32_t count;     // parts of all rows
};

// Counters of a block take at most so many bytes.
inline constexpr std::size_t most_counter_bytes = 131072;

// other_bytes: shared memory of a block beside its counters. A few queries get smaller parts, of at
// least fewest_rows, so that all multiprocessors have work.
inline CounterParts counter_parts(std::uint32_t all_rows, std::size_t counter_bytes, std::size_t other_bytes,
                                  std::uint32_t queries, std::uint32_t fewest_rows, const Context& context)
{
    const auto too_large = [&](std::uint32_t rows) {
        return counter_bytes * rows + other_bytes > context.shared_bytes_per_block() ||
               counter_bytes * rows > most_counter_bytes;
    };
    const std::uint64_t wanted_blocks = 2 * static_cast<std::uint64_t>(context.multiprocessors());
    const auto too_few = [&](std::uint32_t rows) { return std::uint64_t{queries} * all_rows / rows < wanted_blocks; };
    std::uint32_t rows = range_rows;
    while (rows > 1024 && (too_large(rows) || (rows > fewest_rows && too_few(rows)))) rows /= 2;
    return {rows, range_rows / rows, static_cast<std::uint32_t>((std::uint64_t{all_rows} + rows - 1) / rows)};
}

// A launch of blocks for queries and parts: block (x, y) takes query first_query + x and part first_part + y.
struct PartLaunch {
    std::uint32_t first_query;
    std::uint32_t first_part;
    std::uint32_t queries;
    std::uint32_t parts;
};

// The most of a launch.
struct LaunchLimits {
    std::uint32_t blocks;
    std::uint32_t parts = UINT32_MAX;
};

// Some blocks for each multiprocessor: a launch does not run long, and the thresholds of the first parts serve the
// others.
inline LaunchLimits usual_limits(const Context& context)
{
    return {static_cast<std::uint32_t>(context.multiprocessors()) * 16};
}

// Calls launch(PartLaunch) until all parts of all queries are launched.
template <class Launch>
void for_each_launch(const CounterParts& parts, std::uint32_t queries, const LaunchLimits& limits, const Launch& launch)
{
    const std::uint32_t queries_at_a_time = std::min(queries, limits.blocks);
    const std::uint32_t parts_at_a_time = std::min(limits.blocks / queries_at_a_time, limits.parts);
    for (std::uint32_t query = 0; query < queries; query += queries_at_a_time)
        for (std::uint32_t part = 0; part < parts.count; part += parts_at_a_time)
            launch(PartLaunch{query, part, std::min(queries_at_a_time, queries - query),
                              std::min(parts_at_a_time, parts.count - part)});
}

}  // namespace pgwarp::cuda::matchcount
