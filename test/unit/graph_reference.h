// References for graphs: nearest rows by comparing all with all, and the rows that a breadth-first search reaches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/nearest_rows.h"
#include "methods/graph/space.h"
#include "methods/recall/truth.h"

namespace pgwarp::test
{

// Rows that are `left_out` are no row's neighbours and have none.
inline NearestRows exact_nearest_rows(const GraphSpace& space, std::size_t width, RowBitmap left_out, ThreadPool& pool)
{
    std::vector<std::uint32_t> all(space.count());
    std::iota(all.begin(), all.end(), 0U);
    const auto truth =
        calibration_truth(space.metric(), space.rows(), space.dimensions(), all, pool, nullptr, left_out, width);
    NearestRows nearest{width, {}};
    nearest.rows.assign(all.size() * width, no_neighbour);
    for (const std::uint32_t row : all)
        if (!bit_is_set(left_out, row)) std::copy(truth[row].begin(), truth[row].end(), nearest.of(row));
    return nearest;
}

// The number of rows that can be reached from this one, itself included.
inline std::size_t count_reachable(const GraphEdges& edges, std::uint32_t from)
{
    std::vector<bool> seen(edges.count(), false);
    std::vector<std::uint32_t> queue{from};
    seen[from] = true;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (const std::uint32_t to : edges.of(queue[i])) {
            if (to == no_neighbour || seen[to]) continue;
            seen[to] = true;
            queue.push_back(to);
        }
    }
    return queue.size();
}

}  // namespace pgwarp::test
