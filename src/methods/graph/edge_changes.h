// The array "edge_changes": changes of places of "neighbours" since that was written. It only grows, so that a merge
// writes new changes alone. A change to no_neighbour empties the places that follow as well: one change removes all
// edges of a dead row.
#pragma once

#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"

namespace pgwarp
{

struct EdgeChange {
    std::uint32_t row;
    std::uint32_t place;      // of the row, from 0
    std::uint32_t neighbour;  // the new one
};
static_assert(sizeof(EdgeChange) == 12);

// Applies the changes to neighbours [rows][degree], in their order. Throws BadRequest for rows and places that do not
// exist.
void apply_changes(std::span<std::uint32_t> neighbours, std::size_t degree, std::span<const EdgeChange> changes);
inline void apply_changes(GraphEdges& edges, std::span<const EdgeChange> changes)
{
    apply_changes(edges.neighbours, edges.degree, changes);
}

// Returns the last change of each place, also of places that a change of another place empties; their order does not
// matter. Throws as above.
std::vector<EdgeChange> last_changes(std::size_t rows, std::size_t degree, std::span<const EdgeChange> changes);

// Appends the changes from `before` to `after`, without those of rows that only `after` has.
void append_changes(std::span<const std::uint32_t> before, const GraphEdges& after, std::vector<EdgeChange>& changes);

}  // namespace pgwarp
