// The estimate of an index of exact: rows as they came, with a norm each in memory.
#include "methods/exact/estimate.h"

namespace pgwarp
{

namespace
{

constexpr double core_seconds_of_byte = 2.1e-9;
constexpr double gpu_seconds_of_byte = 0.1e-9;
constexpr double norm_bytes = 4;

// An index of words that have weights, which no GPU serves.
BuildEstimate estimate_sparse(const EstimateInput& input)
{
    constexpr double offset_bytes = 8;
    constexpr double size_bytes = 8;
    constexpr double word_bytes = 8;
    const double row = offset_bytes + input.words * word_bytes;
    return {.stored_bytes = input.rows * row,
            .host_bytes = input.rows * (row + size_bytes),
            .gpu_bytes = 0,
            .core_seconds = input.rows * row * core_seconds_of_byte,
            .gpu_seconds = 0};
}

}  // namespace

BuildEstimate estimate_exact_build(const EstimateInput& input)
{
    if (is_list(input.shape.element)) return estimate_sparse(input);
    const bool of_halves = input.shape.element == ElementType::float16;
    const bool of_bits = input.shape.element == ElementType::bit;
    const double row = of_halves ? bytes_of_halves(input.shape) : bytes_of_floats(input.shape);
    const double norms = of_bits ? 0 : norm_bytes;
    // On a GPU candidates come from halves, and the rows decide.
    const double proposing = of_bits || of_halves ? 0 : bytes_of_halves(input.shape);
    return {.stored_bytes = input.rows * row,
            .host_bytes = input.rows * (row + norms),
            .gpu_bytes = of_bits ? 0 : input.rows * (row + norms + proposing),
            .core_seconds = input.rows * row * core_seconds_of_byte,
            .gpu_seconds = input.rows * row * gpu_seconds_of_byte};
}

}  // namespace pgwarp
