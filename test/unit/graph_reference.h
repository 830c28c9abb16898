// References for graphs: nearest rows drawn at random or by comparing all with all, and the rows that a breadth-first
// search reaches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/nearest_rows.h"
#include "methods/graph/space.h"
#include "methods/recall/truth.h"

namespace pgwarp::test
{

// Lists of rows that lie near each other on a circle, some of them short.
inline NearestRows circle_lists(std::uint32_t rows, std::uint32_t width, unsigned seed)
{
    std::mt19937 random(seed);
    NearestRows nearest;
    nearest.width = width;
    nearest.rows.resize(std::size_t{rows} * width);
    for (std::uint32_t row = 0; row < rows; ++row) {
        std::vector<std::uint32_t> near;
        for (std::uint32_t distance = 1; near.size() < width && distance < rows / 2; ++distance) {
            if (random() % 4 != 0) near.push_back((row + distance) % rows);
            if (random() % 4 != 0 && near.size() < width) near.push_back((row + rows - distance) % rows);
        }
        if (random() % 8 == 0) near.resize(random() % width);
        near.resize(width, no_neighbour);
        std::copy(near.begin(), near.end(), nearest.of(row));
    }
    return nearest;
}

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
