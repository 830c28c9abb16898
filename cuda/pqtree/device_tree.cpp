#include "pqtree/device_tree.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <new>
#include <vector>

#include "device/wait.h"
#include "methods/pqtree/pqtree.h"

namespace pgwarp::cuda::pqtree
{

namespace
{

template <class T>
void upload(Context& context, DeviceArray<T>& to, const std::vector<T>& from, cudaStream_t stream)
{
    to = DeviceArray<T>(context.pool(), from.size(), "pqtree tree", stream);
    if (!from.empty()) send(to.data(), from.data(), from.size() * sizeof(T), stream, "copying the tree");
}

}  // namespace

DeviceTree::DeviceTree(Context& context, Metric metric, const TreeArrays& arrays, cudaStream_t stream)
{
    view_.squared = tree_metric(metric) == Metric::l2;
    load_levels(context, arrays, stream);
    load_lines(context, arrays, stream);
    wait_for(stream, "copying the tree");
}

// Brings the tree to the device in its padded layouts.
void DeviceTree::load_levels(Context& context, const TreeArrays& arrays, cudaStream_t stream)
{
    const TreeShape& shape = arrays.tree.shape;
    TreeView& tree = view_;
    tree.dimensions = static_cast<std::uint32_t>(shape.dimensions);
    tree.parts = static_cast<std::uint32_t>(shape.parts);
    tree.k1 = static_cast<std::uint32_t>(shape.k1);
    tree.k2 = static_cast<std::uint32_t>(shape.k2);
    tree.padded_level1 = pqtree::padded_level1(tree.k1);
    for (std::uint32_t part = 0; part <= tree.parts; ++part) {
        tree.begin[part] = static_cast<std::uint32_t>(shape.begin(part));
        tree.padded[part] =
            part == 0 ? 0 : tree.padded[part - 1] + padded_width(tree.begin[part] - tree.begin[part - 1]);
    }
    tree.padded_query = tree.padded[tree.parts];
    std::vector<float> level1(shape.dimensions * tree.padded_level1, 0.0F);
    for (std::size_t c = 0; c < shape.k1; ++c) {
        for (std::size_t d = 0; d < shape.dimensions; ++d)
            level1[d * tree.padded_level1 + c] = arrays.tree.level1[c * shape.dimensions + d];
    }
    std::vector<float> level2(shape.leaves() * tree.padded_query, 0.0F);
    for (std::size_t leaf = 0; leaf < shape.leaves(); ++leaf) {
        for (std::size_t part = 0; part < shape.parts; ++part) {
            std::copy_n(arrays.tree.leaf(part, leaf), shape.width(part),
                        level2.begin() + static_cast<std::ptrdiff_t>(leaf * tree.padded_query + tree.padded[part]));
        }
    }
    upload(context, level1_, level1, stream);
    upload(context, level2_, level2, stream);
    tree.level1 = level1_.data();
    tree.level2 = level2_.data();
}

void DeviceTree::load_lines(Context& context, const TreeArrays& arrays, cudaStream_t stream)
{
    const LineShape shape = arrays.options.lines(arrays.dimensions);
    const Metric metric = view_.squared ? Metric::l2 : Metric::inner_product;
    TreeView& tree = view_;
    tree.line_parts = static_cast<std::uint32_t>(shape.line_parts);
    tree.lines = static_cast<std::uint32_t>(shape.lines());
    std::vector<LineSpan> spans;
    std::vector<std::uint16_t> part_of;
    for (std::size_t i = 0; i < shape.line_parts; ++i) {
        const auto part = static_cast<std::uint16_t>(shape.part(i));
        const auto first = static_cast<std::uint16_t>(shape.begin(i));
        const auto padded = static_cast<std::uint16_t>(tree.padded[part] + first - tree.begin[part]);
        spans.push_back({padded, first, static_cast<std::uint16_t>(shape.width(i)), part});
        part_of.insert(part_of.end(), shape.width(i), static_cast<std::uint16_t>(i));
    }
    const std::vector<float> lengths = line_lengths(arrays.tree, arrays.lines, metric);
    std::vector<LineConstants> constants(lengths.size());
    double largest_bias = 0;
    for (std::size_t i = 0; i < shape.line_parts; ++i) {
        double largest = 0;
        for (std::size_t line = i * shape.lines(); line < (i + 1) * shape.lines(); ++line) {
            const float step = arrays.lines.places[2 * line + 1];
            constants[line] = {arrays.lines.places[2 * line], step, lengths[line],
                               static_cast<std::uint32_t>(arrays.lines.end(line, 0) | arrays.lines.end(line, 1) << 16)};
            largest = std::max(largest, 255.0 * step * (255.0 * step) * lengths[line]);
        }
        largest_bias += largest;
    }
    // Its inverse is finite, too.
    bias_step_ = std::max(static_cast<float>(largest_bias / 65535), FLT_MIN);
    if (!std::isfinite(bias_step_)) throw std::bad_alloc();  // the CPU serves lines that are too long for floats
    upload(context, spans_, spans, stream);
    upload(context, part_of_, part_of, stream);
    upload(context, constants_, constants, stream);
    tree.spans = spans_.data();
    tree.part_of = part_of_.data();
    tree.constants = constants_.data();
}

}  // namespace pgwarp::cuda::pqtree
