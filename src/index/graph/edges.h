// From a k-NN graph to the edges that searches follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "index/bulk_memory.h"
#include "index/graph/nearest_rows.h"
#include "index/index.h"

namespace pgwarp
{

// Out-edges: [rows][degree], unused places hold no_neighbour and come last.
struct GraphEdges {
    std::size_t degree = 0;
    BulkVector<std::uint32_t> neighbours;
    std::size_t count() const { return degree == 0 ? 0 : neighbours.size() / degree; }
    std::span<const std::uint32_t> of(std::size_t row) const { return {neighbours.data() + row * degree, degree}; }
    std::span<std::uint32_t> of(std::size_t row) { return {neighbours.data() + row * degree, degree}; }
};

// Edges that others make a detour of are left out, and each row gets edges from rows that lead to it (CAGRA, arXiv
// 2308.15136, section III-B: detours are counted by ranks). Where there are places left, more of the nearest.
GraphEdges draw_edges(const NearestRows& nearest, std::size_t degree, const BuildProgress& progress, ThreadPool& pool);

// Adds a row that has no edges yet: edges to the rows of `near`, nearest first, that others make no detour of, and
// back.
void insert_row(GraphEdges& edges, std::uint32_t row, std::span<const std::uint32_t> near);

// Makes every row but those left out, which have no edges, reachable from the first seed. Of rows that aren't, one in a
// connected set is linked from a row near it. Needs at least one row.
void connect_rows(GraphEdges& edges, std::span<const std::uint32_t> seeds, RowBitmap left_out,
                  const BuildProgress& progress);

// How many rows can be reached from this one, itself included.
std::size_t count_reachable(const GraphEdges& edges, std::uint32_t from);

}  // namespace pgwarp
