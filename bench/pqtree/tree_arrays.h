// The arrays of a finished build, as the method's own parts take them.
#pragma once

#include "index.h"
#include "methods/pqtree/build_arrays.h"

namespace pgwarp::bench::pqtree
{

inline TreeArrays arrays_of(const Index& index)
{
    TreeArrays arrays;
    arrays.dimensions = index.shape.dimensions;
    arrays.rows = index.rows;
    arrays.options = TreeOptions::resolve(index.builder->effective_options(), arrays.rows, arrays.dimensions);
    arrays.make_quantizer_room();
    for (const ArrayShape& shape : arrays.quantizer_shapes()) {
        std::vector<std::byte> bytes(shape.bytes());
        index.builder->read(shape.name, 0, bytes);
        arrays.write_quantizer(shape.name, 0, bytes);
    }
    arrays.check_quantizer();
    arrays.codes.resize(arrays.rows * arrays.options.code_bytes());
    index.builder->read(array_tree_codes, 0, std::as_writable_bytes(std::span(arrays.codes)));
    return arrays;
}

}  // namespace pgwarp::bench::pqtree
