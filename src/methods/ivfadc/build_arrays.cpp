#include "methods/ivfadc/build_arrays.h"

#include "methods/arrays.h"
#include "numeric/hadamard.h"
#include "numeric/product_quantizer.h"

namespace pgwarp
{

namespace
{

ArrayShape rotation_shape(std::size_t dimensions)
{
    return Rotation::learnt(dimensions)
               ? make_array_shape(array_rotation, ArrayType::f32, dimensions, dimensions)
               : make_array_shape(array_rotation_signs, ArrayType::u8, HadamardPlan::rounds, dimensions);
}

}  // namespace

void require_rotation(std::span<const ArrayShape> arrays, std::size_t dimensions)
{
    const ArrayShape shape = rotation_shape(dimensions);
    require_array(arrays, shape.name, static_cast<ArrayType>(shape.type), shape.rows, shape.width);
}

std::vector<ArrayShape> IvfadcArrays::shapes() const
{
    const bool half = options.keeps_half() && !options.keeps_full();
    std::vector<ArrayShape> all;
    all.push_back(make_array_shape(array_centroids, ArrayType::f32, options.lists, dimensions));
    if (!rotation.empty()) all.push_back(rotation_shape(dimensions));
    if (options.product_codes)
        all.push_back(make_array_shape(array_codebooks, ArrayType::f32, ProductQuantizer::codewords, dimensions));
    if (half) {
        all.push_back(make_array_shape(array_half_mean, ArrayType::f32, 1, dimensions));
        all.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    }
    all.push_back(make_array_shape(array_list_of_row, ArrayType::u32, rows, 1));
    if (options.byte_codes) all.push_back(make_array_shape(array_code_scale, ArrayType::f32, rows, 1));
    if (options.keeps_codes())
        all.push_back(make_array_shape(array_codes, ArrayType::u8, rows, options.code_width(dimensions)));
    if (half) all.push_back(make_array_shape(array_half, ArrayType::f16, rows, dimensions));
    if (options.keeps_full()) all.push_back(make_array_shape(array_vectors, ArrayType::f32, rows, dimensions));
    return all;
}

void IvfadcArrays::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (array == array_centroids) return read_piece(centroids, offset, out);
    if (array == array_rotation) return read_piece(rotation.matrix(), offset, out);
    if (array == array_rotation_signs) return read_piece(rotation.signs(), offset, out);
    if (array == array_codebooks) return read_piece(codebooks, offset, out);
    if (array == array_half_mean) return read_piece(half_mean, offset, out);
    if (array == array_half_scale) return read_piece(half_scale, offset, out);
    if (array == array_list_of_row) return read_piece(list_of_row, offset, out);
    if (array == array_code_scale) return read_piece(code_scale, offset, out);
    if (array == array_codes) return read_piece(codes, offset, out);
    if (array == array_half) return read_piece(halves, offset, out);
    if (array == array_vectors) return read_piece(vectors, offset, out);
    throw BadRequest("unknown array of an ivfadc build");
}

}  // namespace pgwarp
