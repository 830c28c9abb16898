// The estimate of an index of pqtree with halves.
#include "methods/pqtree/estimate.h"

#include "methods/pqtree/defaults.h"

namespace pgwarp
{

namespace
{

constexpr double line_bytes = 10;   // of a line of a part: two ends of a byte, two places of a float
constexpr double place_bytes = 12;  // of a row's place among the bins
constexpr std::size_t host_padding = 16;
constexpr std::size_t gpu_padding = 8;

// Training and calibration, which look at a sample; then each row.
constexpr double fixed_seconds = 0.3;
constexpr double core_seconds_of_dimension = 1.9e-3;
constexpr double core_seconds_of_value = 0.87e-7;
constexpr double gpu_seconds = 0.1;
constexpr double gpu_seconds_of_value = 2e-9;

struct Tree {
    std::size_t parts;
    std::size_t k1;
    std::size_t k2;
    std::size_t line_parts;
};

Tree usual_tree(std::size_t rows, std::size_t dimensions)
{
    Tree tree{};
    tree.parts = std::min(pqtree::usual_parts, std::max<std::size_t>(1, dimensions));
    tree.k1 = pqtree::choose_level1(pqtree::leaves_for(1, rows, tree.parts));
    tree.k2 = pqtree::choose_level2(rows, tree.parts, tree.k1);
    tree.line_parts = pqtree::choose_line_parts(std::max<std::size_t>(1, dimensions), tree.parts);
    return tree;
}

// Of a row, both bytes of each line part in whole vectors of the processor.
double padded_code(std::size_t line_parts, std::size_t padding)
{
    return 2.0 * static_cast<double>((line_parts + padding - 1) / padding * padding);
}

}  // namespace

BuildEstimate estimate_pqtree_build(const EstimateInput& input)
{
    const double dimensions = input.shape.dimensions;
    const Tree tree = usual_tree(static_cast<std::size_t>(input.rows), input.shape.dimensions);
    const auto k1 = static_cast<double>(tree.k1);
    const auto line_parts = static_cast<double>(tree.line_parts);
    const double lines = line_parts * k1 * (k1 - 1) / 2 * line_bytes;
    const double centroids = k1 * (1 + static_cast<double>(tree.k2)) * bytes_of_floats(input.shape);
    const double code = 2.0 * static_cast<double>(tree.parts) + 2 * line_parts;
    const double halves = bytes_of_halves(input.shape);
    return {.stored_bytes = input.rows * (code + halves) + lines + centroids,
            .host_bytes = input.rows * (padded_code(tree.line_parts, host_padding) + place_bytes + halves) + 2 * lines +
                          centroids,
            .gpu_bytes =
                input.rows * (padded_code(tree.line_parts, gpu_padding) + place_bytes + halves) + lines + centroids,
            .core_seconds = fixed_seconds + dimensions * core_seconds_of_dimension +
                            input.rows * dimensions * core_seconds_of_value,
            .gpu_seconds = gpu_seconds + input.rows * dimensions * gpu_seconds_of_value};
}

}  // namespace pgwarp
