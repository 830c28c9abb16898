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

// The same in memory of another owner.
struct EdgeView {
    std::size_t degree = 0;
    std::span<const std::uint32_t> neighbours;
    EdgeView() = default;
    EdgeView(const GraphEdges& edges) : degree(edges.degree), neighbours(edges.neighbours) {}
    std::size_t count() const { return degree == 0 ? 0 : neighbours.size() / degree; }
    std::span<const std::uint32_t> of(std::size_t row) const { return neighbours.subspan(row * degree, degree); }
};

// Draws edges from a k-NN graph (CAGRA, arXiv 2308.15136, section III-B): drops edges with many detours, counted by
// ranks, and adds reverse edges. Places left take more of the nearest. `rows`: those that have neighbours, in any
// order; fastest with near rows together.
GraphEdges draw_edges(const NearestRows& nearest, std::size_t degree, std::span<const std::uint32_t> rows,
                      const BuildProgress& progress, ThreadPool& pool);

// Returns as many rows of `near`, nearest first, as a row has edges: those with the fewest detours, in this order.
std::vector<std::uint32_t> choose_edges(const GraphEdges& edges, std::span<const std::uint32_t> near);

// Adds a row, which has edges to rows inserted before at most: edges to choose_edges() of `near`, nearest first, and
// back. A row `from` without a free place gives up the place give_up(from), none if that is `degree`; without
// `give_up` its last, the least useful.
void insert_row(GraphEdges& edges, std::uint32_t row, std::span<const std::uint32_t> near,
                const std::function<std::size_t(std::uint32_t from)>& give_up = {});

// A breadth-first search from some rows. Returns for each row the row that it was reached from, or one of these two.
inline constexpr std::uint32_t unreached_row = 0xffffffff;
inline constexpr std::uint32_t root_row = 0xfffffffe;
using ReachRows =
    std::function<std::vector<std::uint32_t>(const GraphEdges& edges, std::span<const std::uint32_t> from)>;

// Adds seeds in parts of the graph that no seed reaches, such as clusters that lie apart, up to `most` in all, and
// shuffles the seeds. `rows`: those that have edges. `reach`, where given, makes the first search; its result may be
// empty.
void add_seeds(const GraphEdges& edges, std::span<const std::uint32_t> rows, std::size_t most,
               std::vector<std::uint32_t>& seeds, const ReachRows& reach = {});

// Makes every row reachable from the first seed, but those of `left_out`, which have no edges. One row of each
// unreached set is linked from a row near it. Needs at least one row. `reach` as above.
void connect_rows(GraphEdges& edges, std::span<const std::uint32_t> seeds, RowBitmap left_out,
                  const BuildProgress& progress, const ReachRows& reach = {});

}  // namespace pgwarp
