// The long steps of a graph's build, for a device to override. The CPU makes a step that returns nothing or false.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/space.h"
#include "methods/method.h"

namespace pgwarp
{

class GraphBuildSteps
{
public:
    virtual ~GraphBuildSteps() = default;
    // Chooses seeds and draws the edges, not yet connected. Rows of `left_out` are near to no row and get no edges.
    virtual bool draw(const GraphSpace& space, const GraphOptions& options, RowBitmap left_out,
                      const BuildProgress& progress, ThreadPool& pool, std::vector<std::uint32_t>& seeds,
                      GraphEdges& edges) = 0;
    // As calibration_truth() (methods/recall/truth.h).
    virtual std::optional<std::vector<std::vector<std::uint32_t>>> truth(Metric metric, std::span<const float> rows,
                                                                         std::size_t dimensions,
                                                                         const std::vector<std::uint32_t>& sample,
                                                                         ThreadPool& pool,
                                                                         const CancelToken* cancel) = 0;
    // As ReachRows (methods/graph/edges.h).
    virtual std::vector<std::uint32_t> reach(const GraphEdges& edges, std::span<const std::uint32_t> from) = 0;
    // Returns a searcher of the device; null: the CPU searches.
    virtual std::unique_ptr<Searcher> make_searcher(const IndexShape& shape, const ParameterList& options,
                                                    std::span<const ArrayShape> arrays) = 0;
};

std::unique_ptr<Builder> make_graph_builder(const IndexShape& shape, const ParameterList& options,
                                            std::unique_ptr<GraphBuildSteps> steps);

}  // namespace pgwarp
