// Shapes, pieces and decoding of the arrays of ivfadc.
#include "methods/ivfadc/build_arrays.h"

#include <algorithm>
#include <cstring>

#include "methods/given_arrays.h"
#include "methods/ivfadc/row_store.h"
#include "numeric/hadamard.h"

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

void require_ivfadc_arrays(std::span<const ArrayShape> arrays, const IvfOptions& options, std::size_t rows,
                           std::size_t lists, std::size_t dimensions)
{
    require_array(arrays, array_centroids, ArrayType::f32, lists, dimensions);
    if (options.byte_codes) {
        require_array(arrays, array_code_scale, ArrayType::f32, rows, 1);
        require_array(arrays, array_codes, ArrayType::u8, rows, dimensions);
    }
    if (options.keeps_full()) {
        require_array(arrays, array_vectors, ArrayType::f32, rows, dimensions);
    } else if (options.keeps_half()) {
        require_array(arrays, array_half, ArrayType::f16, rows, dimensions);
        require_array(arrays, array_half_mean, ArrayType::f32, 1, dimensions);
        require_array(arrays, array_half_scale, ArrayType::f32, 1, 2);
    } else if (options.product_codes) {
        require_array(arrays, array_codes, ArrayType::u8, rows, options.subquantizers);
        require_array(arrays, array_codebooks, ArrayType::f32, ProductQuantizer::codewords, dimensions);
        if (!options.opq) return;
        const ArrayShape rotation = rotation_shape(dimensions);
        require_array(arrays, rotation.name, rotation.type, rotation.rows, rotation.width);
    }
}

std::vector<ArrayShape> IvfadcArrays::quantizer_shapes() const
{
    std::vector<ArrayShape> all;
    all.push_back(make_array_shape(array_centroids, ArrayType::f32, options.lists, dimensions));
    if (!rotation.empty()) all.push_back(rotation_shape(dimensions));
    if (options.product_codes)
        all.push_back(make_array_shape(array_codebooks, ArrayType::f32, ProductQuantizer::codewords, dimensions));
    if (stores_half()) {
        all.push_back(make_array_shape(array_half_mean, ArrayType::f32, 1, dimensions));
        all.push_back(make_array_shape(array_half_scale, ArrayType::f32, 1, 2));
    }
    return all;
}

std::vector<ArrayShape> IvfadcArrays::shapes() const
{
    std::vector<ArrayShape> all = quantizer_shapes();
    all.push_back(make_array_shape(array_list_of_row, ArrayType::u32, rows, 1));
    if (options.byte_codes) all.push_back(make_array_shape(array_code_scale, ArrayType::f32, rows, 1));
    if (options.keeps_codes())
        all.push_back(make_array_shape(array_codes, ArrayType::u8, rows, options.code_width(dimensions)));
    if (stores_half()) all.push_back(make_array_shape(array_half, ArrayType::f16, rows, dimensions));
    if (options.keeps_full()) all.push_back(make_array_shape(array_vectors, ArrayType::f32, rows, dimensions));
    return all;
}

void IvfadcArrays::read(const std::string& array, std::uint64_t offset, std::span<std::byte> out) const
{
    if (array == array_centroids) return read_piece(std::span<const float>(centroids), offset, out);
    if (array == array_rotation) return read_piece(rotation.matrix(), offset, out);
    if (array == array_rotation_signs) return read_piece(rotation.signs(), offset, out);
    if (array == array_codebooks && quantizer) return read_piece(quantizer->codebooks(), offset, out);
    if (array == array_half_mean) return read_piece(std::span<const float>(half.codec.mean), offset, out);
    if (array == array_half_scale) return read_piece(std::span<const float>(half.scale), offset, out);
    if (array == array_list_of_row) return read_piece(std::span<const std::uint32_t>(list_of_row), offset, out);
    if (array == array_code_scale) return read_piece(std::span<const float>(code_scale), offset, out);
    if (array == array_codes) return read_piece(std::span<const std::uint8_t>(codes), offset, out);
    if (array == array_half) return read_piece(halves, offset, out);
    if (array == array_vectors) return read_piece(vectors, offset, out);
    throw BadRequest("unknown array of an ivfadc build");
}

void IvfadcArrays::make_quantizer_room()
{
    centroids.resize(options.lists * dimensions);
    if (options.opq) rotation = Rotation(dimensions);
    if (options.product_codes) quantizer.emplace(dimensions, options.subquantizers);
    half.codec.mean.resize(dimensions);
}

void IvfadcArrays::write_quantizer(const ArrayShape& shape, std::uint64_t offset, std::span<const std::byte> bytes)
{
    const std::vector<ArrayShape> known = quantizer_shapes();
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const ArrayShape& one) { return is_named(shape, one.name); });
    if (found == known.end()) throw BadRequest("an array that the index has no use for");
    require_array(std::span(&shape, 1), found->name, found->type, found->rows, found->width);
    if (is_named(shape, array_centroids)) return write_piece(std::span<float>(centroids), offset, bytes);
    if (is_named(shape, array_rotation)) return write_piece(rotation.matrix(), offset, bytes);
    if (is_named(shape, array_rotation_signs)) return write_piece(rotation.signs(), offset, bytes);
    if (is_named(shape, array_codebooks)) return write_piece(quantizer->codebooks(), offset, bytes);
    if (is_named(shape, array_half_mean)) return write_piece(std::span<float>(half.codec.mean), offset, bytes);
    write_piece(std::span<float>(half.scale), offset, bytes);
}

void IvfadcArrays::decode(std::size_t row, const std::byte* stored, float* out) const
{
    if (const VectorForm form = form_of(options); form != VectorForm::none) {
        decode_stored(form, half, dimensions, stored, out);
    } else {
        const float* centroid = centroid_of(row);
        for (std::size_t d = 0; d < dimensions; ++d)
            out[d] = centroid[d] + code_scale[row] * static_cast<float>(std::to_integer<int>(stored[d]) - 128);
    }
}

}  // namespace pgwarp
