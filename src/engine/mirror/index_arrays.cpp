// Checks and counts the arrays of an index.
#include "engine/mirror/index_arrays.h"

#include <algorithm>
#include <iterator>

#include "methods/description.h"
#include "methods/errors.h"

namespace pgwarp
{

namespace
{

constexpr double unknown_list_words = 64;

bool is_tid_array(const ArrayShape& array)
{
    return is_named(array, array_tid_block) || is_named(array, array_tid_offset);
}

}  // namespace

std::vector<ArrayShape> method_arrays(const std::vector<ArrayShape>& arrays)
{
    std::vector<ArrayShape> rest;
    std::copy_if(arrays.begin(), arrays.end(), std::back_inserter(rest),
                 [](const ArrayShape& a) { return !is_tid_array(a) && !is_named(a, array_attributes); });
    return rest;
}

void check_tid_arrays(const std::vector<ArrayShape>& arrays, std::uint64_t rows)
{
    int blocks = 0;
    int offsets = 0;
    for (const ArrayShape& array : arrays) {
        if (!is_tid_array(array)) continue;
        const bool block = is_named(array, array_tid_block);
        (block ? blocks : offsets) += 1;
        if (array.rows != rows || array.width != 1 || array.type != (block ? ArrayType::u32 : ArrayType::u16)) {
            throw BadRequest("array of row addresses has another shape than the index");
        }
    }
    if (blocks != 1 || offsets != 1) throw BadRequest("arrays of row addresses are missing");
}

void check_row_arrays(const std::vector<ArrayShape>& arrays, std::uint64_t rows, std::uint32_t columns)
{
    std::uint32_t found = 0;
    for (const ArrayShape& array : arrays) {
        if (is_named(array, array_list_offsets) && array.rows != rows + 1)
            throw BadRequest("array of lists has another number of rows than the index");
        if (is_named(array, array_vectors) && array.rows != rows)
            throw BadRequest("array of vectors has another number of rows than the index");
        if (!is_named(array, array_attributes)) continue;
        ++found;
        if (array.type != ArrayType::u64 || array.rows != rows || array.width != columns)
            throw BadRequest("array of attributes has another shape than the index");
    }
    if (found != (columns > 0 ? 1U : 0U)) throw BadRequest("an index has one array of attributes, or none");
}

double count_row_values(const IndexShape& shape, std::uint64_t rows, const std::vector<ArrayShape>& arrays)
{
    if (!is_list(shape.element)) return shape.dimensions;
    for (const ArrayShape& array : arrays) {
        if (is_named(array, array_list_words) && rows > 0)
            return 1.0 + static_cast<double>(array.rows) / static_cast<double>(rows);
    }
    return unknown_list_words;
}

}  // namespace pgwarp
