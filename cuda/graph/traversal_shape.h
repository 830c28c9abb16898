// What a traversal is told (traversal.h), and what it tells of itself. Free of CUDA.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

// As in methods/graph/graph.h.
inline constexpr std::uint32_t no_row_here = 0xffffffff;

// What takes the place of a division by a small number: quotient(a, inverse_of(b)) = a / b for a, b below 2^16, b > 1.
PGWARP_HOST_DEVICE constexpr std::uint32_t inverse_of(std::uint32_t divisor)
{
    return static_cast<std::uint32_t>((std::uint64_t{1} << 32) / divisor + 1);
}
PGWARP_HOST_DEVICE constexpr std::uint32_t quotient(std::uint32_t a, std::uint32_t inverse)
{
    return static_cast<std::uint32_t>((std::uint64_t{a} * inverse) >> 32);
}

inline constexpr std::uint32_t most_steps = 32;  // rows of a turn
inline constexpr std::uint32_t most_together = 8;

struct TraversalShape {
    std::uint32_t ef = 0;      // rows that are to be expanded: a queue of the best so many
    std::uint32_t length = 0;  // of the queue, >= ef: more are of use to those who want to see what bounding it saves
    // Rows expanded a turn (SONG: multi-step probing), chosen before any of them is; while the queue is not full,
    // early() at most.
    std::uint32_t steps = 1;
    std::uint32_t degree = 0;
    // Rows scored at a time, >= together() * degree, where others help: steps * degree. Starts may come in larger
    // batches.
    std::uint32_t most_fresh = 0;
    std::uint32_t degree_inverse = 0;  // inverse_of(degree)
    std::uint32_t warps = 1;           // of the group
    // Of the starts the best so many are offered again in the end: those that no way has led to.
    std::uint32_t again = 0;
    bool selected = false;  // a row is remembered as visited only where it enters the queue
    bool deletes = false;   // and forgotten where it leaves it; implies selected
    // What is read ahead, where reading takes longer than computing. Nothing that is found depends on it.
    std::uint32_t ahead = 0;        // rows after those that are expanded whose neighbours are brought near
    std::uint32_t near_places = 0;  // links of rows that come before this place in the queue, and
    std::uint32_t ranked = 0;       // vectors of rows that are before this place in the end
    // A group that nobody helps expands the rows of a turn so many at a time, at least early(): more would be more
    // memory, and no faster. Nothing depends on it either.
    std::uint32_t most_together = graph::most_together;
    // What is found depends on this one: rows of a turn while the queue is not full, and, times the degree, starts that
    // are offered again together.
    std::uint32_t most_early = graph::most_together;

    PGWARP_HOST_DEVICE constexpr std::uint32_t places() const { return steps + ahead; }
    PGWARP_HOST_DEVICE constexpr std::uint32_t together() const
    {
        return steps < most_together ? steps : most_together;
    }
    PGWARP_HOST_DEVICE constexpr std::uint32_t early() const { return steps < most_early ? steps : most_early; }
};

// Where a search begins: at the best `kept` of some rows, and at one from which all others can be reached.
struct TraversalStarts {
    const std::uint32_t* rows = nullptr;  // [count], in memory that all threads read; no_row_here is passed over
    std::uint32_t count = 0;
    std::uint32_t kept = 0;
    std::uint32_t first = no_row_here;
    bool repeats = false;   // a row may be there twice
    bool all_rows = false;  // no_row_here is not among them, and `first` is the first of them
};

// So many of the best starts are put down. All of them lie in memory of `shape.length` entries.
PGWARP_HOST_DEVICE constexpr std::uint32_t noted_starts(const TraversalShape& shape, std::uint32_t kept)
{
    const std::uint32_t most = kept < shape.again ? shape.again : kept;
    return most < shape.length ? most : shape.length;
}

struct TraversalCounts {
    std::uint32_t turns = 0;
    std::uint32_t expanded = 0;
    std::uint32_t scored = 0;
};

}  // namespace pgwarp::cuda::graph
