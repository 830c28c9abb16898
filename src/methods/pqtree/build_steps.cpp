// The steps of a build of pqtree on the CPU.
#include "methods/pqtree/build_steps.h"

#include <algorithm>

#include "numeric/sample.h"

namespace pgwarp
{

std::size_t tree_training_sample(const TreeShape& shape)
{
    return std::max(rows_per_leaf * shape.leaves(), rows_per_centroid * shape.k1);
}

void encode_rows(const TreeArrays& arrays, std::span<const float> rows, std::uint8_t* codes, ThreadPool& pool,
                 const CancelToken* cancel)
{
    const TreeOptions& options = arrays.options;
    const std::size_t stride = options.code_bytes();
    const std::size_t count = rows.size() / arrays.dimensions;
    std::vector<std::uint16_t> leaves(count * options.parts);
    assign_leaves(arrays.tree, rows, leaves, pool, cancel);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t part = 0; part < options.parts; ++part)
            set_leaf(codes + i * stride, part, leaves[i * options.parts + part]);
    }
    encode_lines(arrays.tree, arrays.lines, rows, stride, codes + options.line_offset(), pool, cancel);
}

void TreeBuildSteps::train_tree(const TreeBuildInput& input, TreeArrays& arrays)
{
    input.report("training tree", 0, 1);
    const TreeShape shape = arrays.options.tree(arrays.dimensions);
    const std::vector<float> sample = gather_rows(input.vectors().data(), arrays.dimensions,
                                                  sample_rows(arrays.rows, tree_training_sample(shape), tree_seed));
    arrays.tree =
        pgwarp::train_tree(shape, sample, tree_seed, input.pool, input.progress.cancel,
                           [&](std::size_t done, std::size_t total) { input.report("training tree", done, total); });
}

void TreeBuildSteps::choose_lines(const TreeBuildInput& input, TreeArrays& arrays)
{
    input.report("choosing lines", 0, 1);
    const std::vector<float> sample =
        gather_rows(input.vectors().data(), arrays.dimensions, sample_rows(arrays.rows, line_rows(), tree_seed + 1));
    arrays.lines =
        pgwarp::choose_lines(arrays.tree, arrays.options.line_parts, sample, input.pool, input.progress.cancel);
}

void TreeBuildSteps::encode_rows(const TreeBuildInput& input, TreeArrays& arrays)
{
    const std::size_t stride = arrays.options.code_bytes();
    arrays.codes.resize(arrays.rows * stride);
    for (std::size_t first = 0; first < arrays.rows; first += encode_step) {
        input.report("encoding rows", first, arrays.rows);
        const std::size_t count = std::min(encode_step, arrays.rows - first);
        pgwarp::encode_rows(arrays, input.vectors().subspan(first * arrays.dimensions, count * arrays.dimensions),
                            arrays.codes.data() + first * stride, input.pool, input.progress.cancel);
    }
}

std::unique_ptr<TreeProposer> TreeBuildSteps::make_proposer(const TreeBuildInput& input, const TreeArrays& arrays)
{
    return make_cpu_proposer(input.metric(), arrays.options, arrays.tree, arrays.lines, arrays.codes, input.pool);
}

}  // namespace pgwarp
