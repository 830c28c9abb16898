// The k-NN graph that the edges of a graph are drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/graph/row_groups.h"
#include "methods/graph/space.h"
#include "methods/method.h"

namespace pgwarp
{

// For each row of a space the numbers of rows near it, nearest first, without itself; unused places hold no_neighbour.
struct NearestRows {
    std::size_t width = 0;
    BulkVector<std::uint32_t> rows;  // [count][width]
    const std::uint32_t* of(std::size_t row) const { return rows.data() + row * width; }
    std::uint32_t* of(std::size_t row) { return rows.data() + row * width; }
};

// Compares the rows of each group with those of the groups near it, about `compared` rows each. Rows in no group get no
// neighbours and are neighbours of no row.
NearestRows grouped_nearest_rows(const GraphSpace& space, const RowGroups& groups, std::size_t width,
                                 std::size_t compared, const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
