// Array "edge_changes": what has become of places of "neighbours" since that was written. It only grows, so that a
// merge writes what is new. A change to no_neighbour empties the places that follow as well: one change takes all edges
// from a dead row.
#pragma once

#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"

namespace pgwarp
{

struct EdgeChange {
    std::uint32_t row;
    std::uint32_t place;      // of the row's, from 0
    std::uint32_t neighbour;  // that is there now
};
static_assert(sizeof(EdgeChange) == 12);

// Makes the changes to [rows][degree] neighbours, in their order. Throws BadRequest for what no merge makes.
void apply_changes(std::span<std::uint32_t> neighbours, std::size_t degree, std::span<const EdgeChange> changes);
inline void apply_changes(GraphEdges& edges, std::span<const EdgeChange> changes)
{
    apply_changes(edges.neighbours, edges.degree, changes);
}

// The last change of each place, those emptied along with others too, to be made all at once. Throws as above.
std::vector<EdgeChange> last_changes(std::size_t rows, std::size_t degree, std::span<const EdgeChange> changes);

// Appends what makes rows of `before` what they are in `after`; rows that are only there are left out.
void append_changes(std::span<const std::uint32_t> before, const GraphEdges& after, std::vector<EdgeChange>& changes);

}  // namespace pgwarp
