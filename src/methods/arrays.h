// Small helpers for the named arrays of a method.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "methods/method.h"

namespace pgwarp
{

// Throws BadRequest unless `arrays` has an array of this name with this type, number of rows and width.
inline void require_array(std::span<const ArrayShape> arrays, const char* name, ArrayType type, std::uint64_t rows,
                          std::uint64_t width)
{
    for (const ArrayShape& shape : arrays) {
        if (std::strcmp(shape.name, name) != 0) continue;
        if (shape.type != type || shape.rows != rows || shape.width != width) {
            throw BadRequest("array \"" + std::string(name) + "\" has another shape than its index");
        }
        return;
    }
    throw BadRequest("array \"" + std::string(name) + "\" is missing");
}

inline const ArrayShape* find_array(std::span<const ArrayShape> arrays, const char* name)
{
    for (const ArrayShape& shape : arrays) {
        if (std::strcmp(shape.name, name) == 0) return &shape;
    }
    return nullptr;
}

// read_piece() copies bytes of an array from `offset` on to `out`, write_piece() copies `in` to them. Both throw
// BadRequest past the end of the array.
template <class Element>
void read_piece(std::span<const Element> values, std::uint64_t offset, std::span<std::byte> out)
{
    const auto bytes = std::as_bytes(values);
    if (offset > bytes.size() || out.size() > bytes.size() - offset) throw BadRequest("past the end of an array");
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

template <class Element>
void write_piece(std::span<Element> values, std::uint64_t offset, std::span<const std::byte> in)
{
    const auto bytes = std::as_writable_bytes(values);
    if (offset > bytes.size() || in.size() > bytes.size() - offset) throw BadRequest("past the end of an array");
    std::copy_n(in.begin(), in.size(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

}  // namespace pgwarp
