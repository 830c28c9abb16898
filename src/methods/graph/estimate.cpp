// The estimate of an index of graph with full vectors.
#include "methods/graph/estimate.h"

#include <algorithm>
#include <cmath>

namespace pgwarp
{

namespace
{

constexpr double degree = 32;
constexpr double number_bytes = 4;
constexpr double seeds_of_root = 2.5;  // seed_count()
constexpr double seed_limit = 16384;

constexpr double core_seconds_of_row = 4e-5;
constexpr double core_seconds_of_value = 6.2e-7;
constexpr double gpu_seconds = 0.1;
constexpr double gpu_seconds_of_value = 9e-9;

}  // namespace

BuildEstimate estimate_graph_build(const EstimateInput& input)
{
    const double dimensions = input.shape.dimensions;
    const bool of_bits = input.shape.element == ElementType::bit;
    const double vectors = bytes_of_floats(input.shape);
    const double links = degree * number_bytes;
    const double seeds = std::min({seeds_of_root * std::sqrt(input.rows), seed_limit, input.rows});
    // Rows as bytes, along which a search goes, with two terms; those of the seeds twice.
    const double bytes = of_bits ? 0 : dimensions + 2 * sizeof(float);
    const double searched = input.rows * (vectors + links + bytes) + seeds * (number_bytes + bytes);
    return {.stored_bytes = input.rows * (vectors + links) + seeds * number_bytes,
            .host_bytes = searched,
            .gpu_bytes = of_bits ? 0 : searched,
            .core_seconds = input.rows * (core_seconds_of_row + dimensions * core_seconds_of_value),
            .gpu_seconds = gpu_seconds + input.rows * dimensions * gpu_seconds_of_value};
}

}  // namespace pgwarp
