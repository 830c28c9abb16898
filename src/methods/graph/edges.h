// From a k-NN graph to the edges that searches follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "methods/bulk_memory.h"
#include "methods/graph/nearest_rows.h"
#include "methods/method.h"

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

// The same where they lie elsewhere.
struct EdgeView {
    std::size_t degree = 0;
    std::span<const std::uint32_t> neighbours;
    EdgeView() = default;
    EdgeView(const GraphEdges& edges) : degree(edges.degree), neighbours(edges.neighbours) {}
    std::size_t count() const { return degree == 0 ? 0 : neighbours.size() / degree; }
    std::span<const std::uint32_t> of(std::size_t row) const { return neighbours.subspan(row * degree, degree); }
};

// Edges that others make a detour of are left out, and each row gets edges from rows that lead to it (CAGRA, arXiv
// 2308.15136, section III-B: detours are counted by ranks). Where there are places left, more of the nearest. `rows`:
// those that have neighbours, in any order; it is fastest with near ones together.
GraphEdges draw_edges(const NearestRows& nearest, std::size_t degree, std::span<const std::uint32_t> rows,
                      const BuildProgress& progress, ThreadPool& pool);

// Of the rows of `near`, nearest first, as many as a row has edges, those first that others make no detour of.
std::vector<std::uint32_t> choose_edges(const GraphEdges& edges, std::span<const std::uint32_t> near);

// Adds a row that has no edges yet: edges to the rows of `near`, nearest first, that others make no detour of, and
// back.
void insert_row(GraphEdges& edges, std::uint32_t row, std::span<const std::uint32_t> near);

// A search in breadth from some rows: the row that each was reached from, or these.
inline constexpr std::uint32_t unreached_row = 0xffffffff;
inline constexpr std::uint32_t root_row = 0xfffffffe;
using ReachRows =
    std::function<std::vector<std::uint32_t>(const GraphEdges& edges, std::span<const std::uint32_t> from)>;

// Adds seeds in parts of the graph that no seed leads to, such as clusters that lie apart, up to `most`; the order is
// drawn anew. `rows`: those that have edges. `reach`, where given, makes the first search, whose result may be empty:
// then it is made here.
void add_seeds(const GraphEdges& edges, std::span<const std::uint32_t> rows, std::size_t most,
               std::vector<std::uint32_t>& seeds, const ReachRows& reach = {});

// Makes every row but those left out, which have no edges, reachable from the first seed. Of rows that aren't, one in a
// connected set is linked from a row near it. Needs at least one row. `reach` as above.
void connect_rows(GraphEdges& edges, std::span<const std::uint32_t> seeds, RowBitmap left_out,
                  const BuildProgress& progress, const ReachRows& reach = {});

}  // namespace pgwarp
