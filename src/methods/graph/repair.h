// Taking dead rows out of a graph, so that searches don't pass through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/insertion.h"
#include "methods/method.h"

namespace pgwarp
{

struct Repair {
    const RowScores& scores;
    RowBitmap dead;            // of all rows; some are alive
    std::size_t build_degree;  // of the nearest rows found, so many are looked at for edges
};

// Where an edge leads to a dead row, there comes one of the rows near: neighbours of the dead row, or of dead rows
// behind it, chosen as insertions choose (FreshDiskANN: Singh et al., arXiv 2105.09613, algorithm 4). Other edges stay
// where they are. Rows that have too few edges then are searched for and linked as new ones are. Dead rows lose their
// edges, and a dead seed gives its place to the nearest live row found, or is left out where another seed is near and
// there are enough: some are left. That every live row can be reached is for connect_rows() to see to. Returns how many
// dead rows had edges.
std::size_t unlink_dead(GraphEdges& edges, std::vector<std::uint32_t>& seeds, const Repair& repair,
                        const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
