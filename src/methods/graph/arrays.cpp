// The arrays of a graph: names, shapes and order.
#include "methods/arrays.h"

#include "methods/graph/graph.h"

namespace pgwarp
{

ArrayShape graph_row_array(const IndexShape& shape, const GraphOptions& options, std::size_t rows)
{
    switch (options.vectors) {
        case GraphVectors::half:
            return make_array_shape(array_half, ArrayType::f16, rows, shape.dimensions);
        case GraphVectors::bits:
            return make_array_shape(array_bits, ArrayType::u32, rows, options.bits / 32);
        case GraphVectors::full:
            break;
    }
    return make_array_shape(array_vectors, vector_array_type(shape), rows, shape.dimensions);
}

std::vector<ArrayShape> graph_arrays(const IndexShape& shape, const GraphOptions& options, std::size_t rows,
                                     std::size_t seeds)
{
    std::vector<ArrayShape> all = {make_array_shape(array_seeds, ArrayType::u32, seeds, 1)};
    if (options.vectors == GraphVectors::half) {
        all.push_back(make_array_shape(array_half_mean, ArrayType::f32, 1, shape.dimensions));
        all.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    }
    if (options.vectors == GraphVectors::bits)
        all.push_back(make_array_shape(array_projection, ArrayType::f32, options.bits, shape.dimensions + 1));
    all.push_back(make_array_shape(array_neighbours, ArrayType::u32, rows, options.degree));
    all.push_back(graph_row_array(shape, options, rows));
    return all;
}

void require_graph_arrays(std::span<const ArrayShape> arrays, const IndexShape& shape, const GraphOptions& options)
{
    const ArrayShape* neighbours = find_array(arrays, array_neighbours);
    const ArrayShape* seeds = find_array(arrays, array_seeds);
    if (neighbours == nullptr) throw BadRequest("array \"neighbours\" is missing");
    if (seeds == nullptr || seeds->rows == 0) throw BadRequest("array \"seeds\" is missing");
    for (const ArrayShape& wanted : graph_arrays(shape, options, neighbours->rows, seeds->rows))
        require_array(arrays, wanted.name, wanted.type, wanted.rows, wanted.width);
    const ArrayShape* changes = find_array(arrays, array_edge_changes);
    if (changes != nullptr) require_array(arrays, array_edge_changes, ArrayType::u32, changes->rows, 3);
}

}  // namespace pgwarp
