// The arrays that a calibrating build is given in pieces (protocol/calibration.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "methods/arrays.h"
#include "methods/errors.h"

namespace pgwarp::matchcount
{

// Of tombstones: a bit a row.
inline constexpr std::uint64_t most_bitmap_bytes = (std::uint64_t{1} << 32) / 8 + 8;

// Takes a piece of an array of the values' type. Throws BadRequest for an array of more than `most_bytes`.
template <class Values>
void take_piece(Values& values, const ArrayShape& array, std::uint64_t most_bytes, std::uint64_t offset,
                std::span<const std::byte> bytes)
{
    using Value = typename Values::value_type;
    if (array.bytes() > most_bytes || array.bytes() % sizeof(Value) != 0)
        throw BadRequest("array \"" + std::string(array.name) + "\" is too large");
    values.resize(array.bytes() / sizeof(Value));
    write_piece(std::span<Value>(values), offset, bytes);
}

}  // namespace pgwarp::matchcount
