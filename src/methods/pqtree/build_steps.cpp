// The steps of a build of pqtree on the CPU.
#include "methods/pqtree/build_steps.h"

#include <algorithm>

#include "numeric/sample.h"

namespace pgwarp
{

void TreeBuildSteps::train_tree(const TreeBuildInput& input, TreeArrays& arrays)
{
    input.report("training tree", 0, 1);
    const TreeShape shape = arrays.options.tree(arrays.dimensions);
    const std::vector<float> sample = gather_rows(
        input.vectors().data(), arrays.dimensions,
        sample_rows(arrays.rows, std::max(rows_per_leaf * shape.leaves(), rows_per_centroid * shape.k1), tree_seed));
    arrays.tree =
        pgwarp::train_tree(shape, sample, tree_seed, input.pool, input.progress.cancel,
                           [&](std::size_t done, std::size_t total) { input.report("training tree", done, total); });
}

void TreeBuildSteps::choose_lines(const TreeBuildInput& input, TreeArrays& arrays)
{
    input.report("choosing lines", 0, 1);
    const std::vector<float> sample = gather_rows(input.vectors().data(), arrays.dimensions,
                                                  sample_rows(arrays.rows, line_sample_rows, tree_seed + 1));
    arrays.lines =
        pgwarp::choose_lines(arrays.tree, arrays.options.line_parts, sample, input.pool, input.progress.cancel);
}

void TreeBuildSteps::encode_rows(const TreeBuildInput& input, TreeArrays& arrays)
{
    const TreeOptions& options = arrays.options;
    const std::size_t stride = options.code_bytes();
    arrays.codes.resize(arrays.rows * stride);
    std::vector<std::uint16_t> leaves(std::min(encode_step, arrays.rows) * options.parts);
    for (std::size_t first = 0; first < arrays.rows; first += encode_step) {
        input.report("encoding rows", first, arrays.rows);
        const std::size_t count = std::min(encode_step, arrays.rows - first);
        const auto rows = input.vectors().subspan(first * arrays.dimensions, count * arrays.dimensions);
        std::uint8_t* codes = arrays.codes.data() + first * stride;
        assign_leaves(arrays.tree, rows, std::span(leaves).first(count * options.parts), input.pool);
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t part = 0; part < options.parts; ++part)
                set_leaf(codes + i * stride, part, leaves[i * options.parts + part]);
        }
        encode_lines(arrays.tree, arrays.lines, rows, stride, codes + options.line_offset(), input.pool);
    }
}

std::unique_ptr<TreeProposer> TreeBuildSteps::make_proposer(const TreeBuildInput& input, const TreeArrays& arrays)
{
    return make_cpu_proposer(input.metric(), arrays.options, arrays.tree, arrays.lines, arrays.codes, input.pool);
}

}  // namespace pgwarp
