// Removes dead rows from a graph, so that searches do not pass through them.
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
    RowBitmap dead;            // of all rows; at least one row is alive
    std::size_t build_degree;  // number of the nearest rows found that edges are chosen from
};

// Replaces edges to dead rows by edges to near ones: neighbours of the dead row, or of dead rows behind it, chosen as
// for an insertion (FreshDiskANN: Singh et al., arXiv 2105.09613, algorithm 4). Other edges keep their places. Rows
// left with few edges are searched for and linked like new rows. Dead rows lose their edges. A dead seed is replaced by
// the nearest live row found, or dropped where another seed is near and the others are enough; at least one seed
// remains. The caller has to call connect_rows() afterwards. Returns the number of dead rows that had edges.
std::size_t unlink_dead(GraphEdges& edges, std::vector<std::uint32_t>& seeds, const Repair& repair,
                        const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
