// A graph index that a benchmark builds on the device and keeps in host memory, and the truth for its queries.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench_data.h"
#include "device/context.h"
#include "methods/method.h"

namespace pgwarp::bench
{

using Results = std::vector<std::vector<RowResult>>;

// --metric; L2 where none is given.
Metric metric_of(const Arguments& arguments);

struct GraphIndex {
    IndexShape shape{};
    ParameterList options;
    std::vector<ArrayShape> arrays;
    std::map<std::string, std::vector<std::byte>> contents;
    std::vector<std::pair<std::string, double>> phases;  // seconds, in order
    double seconds = 0;
    Calibration calibration;

    // Gives all arrays to a mirror or a searcher.
    template <class Target>
    void feed(Target& target) const
    {
        constexpr std::size_t step = 8 << 20;
        for (const ArrayShape& array : arrays) {
            const std::vector<std::byte>& bytes = contents.at(array.name);
            for (std::size_t offset = 0; offset < bytes.size(); offset += step) {
                target.write(array.name, offset,
                             std::span(bytes).subspan(offset, std::min(step, bytes.size() - offset)));
            }
        }
    }
};

// vectors: full, half or bits. --build-degree and --bits apply.
GraphIndex build_graph(const Data& data, const Arguments& arguments, std::size_t degree, const std::string& vectors,
                       cuda::Context& context, ThreadPool& pool);
void print_build(const GraphIndex& built);

// The k nearest rows of each query, by the device's exact search.
Results find_truth(const Data& data, Metric metric, std::size_t k, cuda::Context& context, ThreadPool& pool);

}  // namespace pgwarp::bench
