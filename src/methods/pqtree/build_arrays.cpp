// Shapes and pieces of the arrays of pqtree.
#include "methods/pqtree/build_arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "methods/arrays.h"

namespace pgwarp
{

namespace
{

std::vector<ArrayShape> quantizer_shapes_of(const TreeOptions& options, std::size_t dimensions)
{
    const std::uint64_t lines = std::uint64_t{options.line_parts} * options.lines(dimensions).lines();
    const auto width = static_cast<std::uint32_t>(dimensions);
    std::vector<ArrayShape> all = {make_array_shape(array_level1, ArrayType::f32, options.k1, width),
                                   make_array_shape(array_level2, ArrayType::f32, options.k1 * options.k2, width),
                                   make_array_shape(array_line_ends, ArrayType::u8, lines, 2),
                                   make_array_shape(array_line_places, ArrayType::f32, lines, 2)};
    if (options.keeps_half()) {
        all.push_back(make_array_shape(array_half_mean, ArrayType::f32, 1, width));
        all.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    }
    return all;
}

std::vector<ArrayShape> shapes_of(const TreeOptions& options, std::size_t rows, std::size_t dimensions)
{
    std::vector<ArrayShape> all = quantizer_shapes_of(options, dimensions);
    const auto width = static_cast<std::uint32_t>(dimensions);
    all.push_back(make_array_shape(array_tree_codes, ArrayType::u8, rows, options.code_bytes()));
    if (options.keeps_half()) all.push_back(make_array_shape(array_half, ArrayType::f16, rows, width));
    if (options.keeps_full()) all.push_back(make_array_shape(array_vectors, ArrayType::f32, rows, width));
    return all;
}

bool are_finite(std::span<const float> values)
{
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace

void require_pqtree_arrays(std::span<const ArrayShape> arrays, const TreeOptions& options, std::size_t rows,
                           std::size_t dimensions)
{
    for (const ArrayShape& shape : shapes_of(options, rows, dimensions))
        require_array(arrays, shape.name, shape.type, shape.rows, shape.width);
}

std::vector<ArrayShape> TreeArrays::quantizer_shapes() const
{
    return quantizer_shapes_of(options, dimensions);
}

std::vector<ArrayShape> TreeArrays::shapes() const
{
    return shapes_of(options, rows, dimensions);
}

void TreeArrays::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (array == array_level1) return read_piece(std::span<const float>(tree.level1), offset, out);
    if (array == array_level2) return read_piece(std::span<const float>(tree.level2), offset, out);
    if (array == array_line_ends) return read_piece(std::span<const std::uint8_t>(lines.ends), offset, out);
    if (array == array_line_places) return read_piece(std::span<const float>(lines.places), offset, out);
    if (array == array_half_mean) return read_piece(std::span<const float>(half.codec.mean), offset, out);
    if (array == array_half_scale) return read_piece(std::span<const float>(half.scale), offset, out);
    if (array == array_tree_codes) return read_piece(std::span<const std::uint8_t>(codes), offset, out);
    if (array == array_half) return read_piece(halves, offset, out);
    if (array == array_vectors) return read_piece(vectors, offset, out);
    throw BadRequest("unknown array of a pqtree build");
}

void TreeArrays::make_quantizer_room()
{
    tree.shape = options.tree(dimensions);
    tree.level1.resize(options.k1 * dimensions);
    tree.level2.resize(options.k1 * options.k2 * dimensions);
    lines.shape = options.lines(dimensions);
    lines.ends.resize(2 * options.line_parts * lines.shape.lines());
    lines.places.resize(lines.ends.size());
    half.codec.mean.resize(dimensions);
}

bool TreeArrays::write_quantizer(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes)
{
    if (array == array_level1) {
        write_piece(std::span<float>(tree.level1), offset, bytes);
    } else if (array == array_level2) {
        write_piece(std::span<float>(tree.level2), offset, bytes);
    } else if (array == array_line_ends) {
        write_piece(std::span<std::uint8_t>(lines.ends), offset, bytes);
    } else if (array == array_line_places) {
        write_piece(std::span<float>(lines.places), offset, bytes);
    } else {
        return half.write(array, offset, bytes);
    }
    return true;
}

void TreeArrays::check_quantizer()
{
    const auto exists = [&](std::uint8_t end) { return end < options.k1; };
    if (!std::all_of(lines.ends.begin(), lines.ends.end(), exists))
        throw BadRequest("a line ends at a centroid that does not exist");
    if (!are_finite(tree.level1) || !are_finite(tree.level2) || !are_finite(lines.places))
        throw BadRequest("the tree holds numbers that are not finite");
    if (options.keeps_half()) half.take_scale();
}

}  // namespace pgwarp
