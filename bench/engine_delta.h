// The time that delta rows add to a search before they are merged: the engine's own search over a mirror with a
// delta, without a database.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/method.h"

namespace pgwarp::bench
{

struct DeltaRun {
    IndexShape shape;
    std::uint32_t k = 10;
    std::size_t batch = 1;    // queries a call
    std::size_t threads = 1;  // of a call, 0 = cores
    double recall = 0.95;     // asked of the index
    std::span<const float> queries;
    std::span<const float> rows;      // of the index
    std::span<const float> delta;     // enough for the largest percentage
    std::vector<double> percentages;  // of the index's rows
};

// Prints a line for each percentage with the delta rows compared one by one, and one with them in parts.
void measure_delta(const DeltaRun& run, const Builder& index, ThreadPool& pool);

}  // namespace pgwarp::bench
