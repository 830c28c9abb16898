#include "index/graph/edge_changes.h"

namespace pgwarp
{

void apply_changes(GraphEdges& edges, std::span<const EdgeChange> changes)
{
    const std::size_t rows = edges.count();
    for (const EdgeChange& change : changes) {
        if (change.row >= rows || change.place >= edges.degree)
            throw BadRequest("an edge is changed that does not exist");
        if (change.neighbour != no_neighbour && change.neighbour >= rows)
            throw BadRequest("a neighbour is no row of its index");
        edges.of(change.row)[change.place] = change.neighbour;
    }
}

}  // namespace pgwarp
