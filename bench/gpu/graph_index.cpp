#include "graph_index.h"

#include <cstdio>

#include "exact/exact.h"
#include "graph/graph.h"
#include "methods/arrays.h"
#include "methods/ivfadc/ivfadc.h"

namespace pgwarp::bench
{

namespace
{

// Time goes to the phase that was reported last.
struct Phases {
    GraphIndex& built;
    Clock::time_point last = Clock::now();
    std::string current = "beginning";
    void report(const char* phase)
    {
        const double passed = seconds_since(last);
        last = Clock::now();
        if (!built.phases.empty() && built.phases.back().first == current) {
            built.phases.back().second += passed;
        } else {
            built.phases.emplace_back(current, passed);
        }
        current = phase;
    }
};

}  // namespace

Metric metric_of(const Arguments& arguments)
{
    const std::string name = arguments.text("metric", "l2");
    if (name == "ip") return Metric::inner_product;
    if (name == "cosine") return Metric::cosine;
    return name == "l1" ? Metric::l1 : Metric::l2;
}

GraphIndex build_graph(const Data& data, const Arguments& arguments, std::size_t degree, const std::string& vectors,
                       cuda::Context& context, ThreadPool& pool)
{
    GraphIndex built;
    built.shape.method = Method::graph;
    built.shape.element = ElementType::float32;
    built.shape.metric = static_cast<std::uint8_t>(metric_of(arguments));
    built.shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    ParameterList asked;
    asked.set("degree", static_cast<std::int64_t>(degree));
    asked.set("build_degree", static_cast<std::int64_t>(arguments.number("build-degree", 0)));
    asked.set("vectors", vectors == "bits" ? 2 : vectors == "half" ? 1 : 0);
    asked.set("bits", static_cast<std::int64_t>(arguments.number("bits", 0)));
    RowBuffer rows(data.dimensions);
    std::vector<Tid> tids(data.rows());
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows.append(tids, data.base);
    rows.sort_by_tid(&pool);
    const auto builder = cuda::graph::make_builder(context, built.shape, asked);
    Phases phases{built};
    const auto begin = Clock::now();
    const BuildProgress progress{[&phases](const char* phase, std::uint64_t, std::uint64_t) { phases.report(phase); },
                                 nullptr};
    builder->run(rows, progress, pool);
    phases.report("end");
    built.seconds = seconds_since(begin);
    built.options = builder->effective_options();
    built.arrays = builder->arrays();
    built.calibration = builder->calibration();
    for (const ArrayShape& array : built.arrays) {
        std::vector<std::byte>& bytes = built.contents[array.name];
        bytes.resize(array.bytes());
        builder->read(array.name, 0, bytes);
    }
    return built;
}

Results find_truth(const Data& data, Metric metric, std::size_t k, cuda::Context& context, ThreadPool& pool)
{
    IndexShape shape{};
    shape.method = Method::exact;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(data.dimensions);
    const std::vector<ArrayShape> arrays{make_array_shape(array_vectors, ArrayType::f32, data.rows(), data.dimensions)};
    const auto searcher = cuda::make_exact_searcher(context, shape, arrays);
    searcher->write(array_vectors, 0, std::as_bytes(std::span(data.base)));
    searcher->finish_load(pool);
    SearchBatch batch;
    batch.queries = data.queries;
    batch.count = data.asked();
    batch.k = static_cast<std::uint32_t>(k);
    Results truth;
    searcher->search(batch, truth, pool);
    return truth;
}

void print_build(const GraphIndex& built)
{
    std::printf("built in %.3f s, calibrated with %u queries, %u points\n", built.seconds, built.calibration.sample,
                built.calibration.count);
    for (const auto& [phase, seconds] : built.phases) std::printf("  %-24s %8.3f s\n", phase.c_str(), seconds);
    for (std::uint32_t i = 0; i < built.calibration.count; ++i) {
        const CalibrationPoint& point = built.calibration.points[i];
        std::printf("  ef %5lld: %.4f %.4f %.4f %.4f\n", static_cast<long long>(point.effort), point.recall[0],
                    point.recall[1], point.recall[2], point.recall[3]);
    }
    std::fflush(stdout);
}

}  // namespace pgwarp::bench
