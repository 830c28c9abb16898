// The parameters and the counts of a traversal (traversal.h). Free of CUDA.
#pragma once

#include <cstdint>

#include "graph/entry.h"

namespace pgwarp::cuda::graph
{

// The no_neighbour of methods/graph/graph.h.
inline constexpr std::uint32_t no_row_here = 0xffffffff;

// A division by a small number as a multiplication: quotient(a, inverse_of(b)) = a / b for a, b below 2^16, b > 1.
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
    std::uint32_t ef = 0;      // the best rows seen, which are to be expanded
    std::uint32_t length = 0;  // entries of the queue, >= ef; more than ef serve to measure the gain of the bound
    // Rows expanded a turn (SONG: multi-step probing), chosen before any of them is expanded. At most early() while the
    // queue is not full.
    std::uint32_t steps = 1;
    std::uint32_t degree = 0;
    // The most rows scored at a time: >= together() * degree, or steps * degree where a block cluster shares scores.
    // Starts may come in larger batches.
    std::uint32_t most_batch = 0;
    std::uint32_t degree_inverse = 0;  // inverse_of(degree)
    std::uint32_t warps = 1;           // of the group
    // The number of the best starts that are offered again at the end, where no edges have led to them.
    std::uint32_t again = 0;
    bool selected = false;  // a row is remembered as visited only where it enters the queue
    bool deletes = false;   // and forgotten where it leaves it; implies selected
    // Read-ahead, where reading takes longer than computing. It does not change the answer.
    std::uint32_t ahead = 0;        // rows after the expanded ones whose neighbours are prefetched
    std::uint32_t near_places = 0;  // links are prefetched of rows that enter the queue before this place
    std::uint32_t ranked = 0;       // vectors are prefetched of rows before this place at the end
    // The most rows of a turn that a single group expands together, at least early(): more would take more memory and
    // be no faster. It does not change the answer.
    std::uint32_t most_together = graph::most_together;
    // Rows of a turn while the queue is not full and, times the degree, starts offered again at a time. It changes the
    // answer.
    std::uint32_t most_early = graph::most_together;

    PGWARP_HOST_DEVICE constexpr std::uint32_t places() const { return steps + ahead; }
    PGWARP_HOST_DEVICE constexpr std::uint32_t together() const
    {
        return steps < most_together ? steps : most_together;
    }
    PGWARP_HOST_DEVICE constexpr std::uint32_t early() const { return steps < most_early ? steps : most_early; }
};

// The starts of a search: the best `kept` of some rows, and a first row from which all others can be reached.
struct TraversalStarts {
    const std::uint32_t* rows = nullptr;  // [count], in memory that all threads read; no_row_here is skipped
    std::uint32_t count = 0;
    std::uint32_t kept = 0;
    std::uint32_t first = no_row_here;
    bool repeats = false;   // a row may occur twice
    bool all_rows = false;  // no_row_here does not occur, and `first` is rows[0]
};

// The number of best starts that are kept. They fit in `shape.length` entries.
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
