// Recall of a changed graph, by a sample that is removed from a copy of it.
#include "methods/graph/remeasure.h"

#include <algorithm>
#include <string>

#include "methods/arrays.h"
#include "methods/description.h"
#include "methods/graph/lent_searcher.h"
#include "methods/graph/repair.h"
#include "methods/recall/searches.h"
#include "methods/recall/truth.h"
#include "numeric/sample.h"

namespace pgwarp
{

namespace
{

constexpr std::uint64_t remeasured_seed = 0x6d656173;

std::vector<std::uint32_t> sample_live(const ChangedGraph& graph)
{
    const std::vector<std::uint32_t> live = rows_outside(graph.dead, graph.edges.count());
    std::vector<std::uint32_t> sample = sample_rows(live.size(), held_out_sample(live.size()), remeasured_seed);
    for (std::uint32_t& row : sample) row = live[row];
    return sample;
}

std::unique_ptr<Searcher> search_over(const ChangedGraph& graph, const GraphEdges& edges,
                                      std::span<const std::uint32_t> seeds, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = graph_arrays(graph.shape, graph.options, edges.count(), seeds.size());
    const auto read = [&](const std::string& name, std::span<std::byte> out) {
        if (name == array_seeds) return read_piece(seeds, 0, out);
        read_piece(name == array_half_mean ? graph.half_mean : graph.half_scale, 0, out);
    };
    const LentArrays lent{edges,
                          graph.options.vectors == GraphVectors::half ? std::span<const float>() : graph.vectors,
                          graph.halves,
                          {}};
    return make_lent_graph_searcher(graph.shape, graph.options.as_parameters(), arrays, read, lent, pool);
}

}  // namespace

Calibration measure_changed_graph(const ChangedGraph& graph, const BuildProgress& progress, ThreadPool& pool)
{
    const std::size_t dimensions = graph.shape.dimensions;
    const auto metric = static_cast<Metric>(graph.shape.metric);
    const std::vector<std::uint32_t> sample = sample_live(graph);
    if (sample.empty()) return {};
    progress.report("calibrating", 0, 1);
    std::vector<std::uint64_t> gone(graph.dead.begin(), graph.dead.end());
    gone.resize((graph.edges.count() + 63) / 64, 0);
    for (const std::uint32_t row : sample) set_bit(gone, row);
    GraphEdges edges = graph.edges;
    std::vector<std::uint32_t> seeds = graph.seeds;
    unlink_dead(edges, seeds, {graph.scores, gone, graph.options.build_degree}, progress, pool);
    connect_rows(edges, seeds, gone, progress);
    const auto truth = calibration_truth(metric, graph.vectors, dimensions, sample, pool, progress.cancel, gone);
    const std::vector<float> queries = gather_rows(graph.vectors.data(), dimensions, sample);
    const std::unique_ptr<Searcher> searcher = search_over(graph, edges, seeds, pool);
    const auto distances = distances_of_truth(metric, graph.vectors, dimensions, queries, truth);
    const std::size_t held = rows_outside(gone, graph.edges.count()).size();
    const RecallInput input{
        .searcher = *searcher, .rows = held, .queries = queries, .truth = truth, .dead = gone, .distances = distances};
    return measure_recall(input, graph_recall_rules(held), progress, pool);
}

}  // namespace pgwarp
