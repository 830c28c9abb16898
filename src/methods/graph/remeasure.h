// Measuring the recall of a graph that has changed since its build.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/insertion.h"
#include "methods/method.h"
#include "numeric/half_codec.h"

namespace pgwarp
{

// All rows, in their stored form and as floats. Dead rows have no edges.
struct ChangedGraph {
    const IndexShape& shape;
    const GraphOptions& options;
    const RowScores& scores;
    const GraphEdges& edges;
    const std::vector<std::uint32_t>& seeds;
    RowBitmap dead;
    std::span<const float> vectors;
    std::span<const std::uint16_t> halves;  // with vectors = half, and the next two as well
    std::span<const float> half_mean;
    std::span<const float> half_scale;
};

// Removes a sample of the live rows from a copy of the graph, as if they had died, and searches for them. The curve is
// empty where the rows are too few for a sample.
Calibration measure_changed_graph(const ChangedGraph& graph, const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
