#include "index/graph/edge_changes.h"

namespace pgwarp
{

void apply_changes(std::size_t degree, std::span<std::uint32_t> neighbours, std::span<const EdgeChange> changes)
{
    const std::size_t rows = neighbours.size() / degree;
    for (const EdgeChange& change : changes) {
        if (change.row >= rows || change.place >= degree) throw BadRequest("an edge is changed that does not exist");
        if (change.neighbour != no_neighbour && change.neighbour >= rows)
            throw BadRequest("a neighbour is no row of its index");
        neighbours[change.row * degree + change.place] = change.neighbour;
    }
}

}  // namespace pgwarp
