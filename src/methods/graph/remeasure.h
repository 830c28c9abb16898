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

// All rows, in the form in which the index keeps them, and as floats. Dead ones have no edges.
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

// A sample of the live rows is taken out of a copy of the graph, as if they had died, and searched for: as a build
// measures before it takes in the rows that it held out. An empty curve of fewer than a few rows.
Calibration measure_changed_graph(const ChangedGraph& graph, const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
