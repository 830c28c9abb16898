// Codes of SQL values as attributes of rows: one u64 a filter column, whose order is the order of the values. Backends
// encode, the engine compares numbers. Two values may share a code (they tie); then the backend rechecks the rows.
//
// - NULL has the code null_code, above those of all values: `IS NULL` and `IS NOT NULL` are ranges of codes too. The
// one
//   value of a type of 64 bits that would have this code ties with the value below it.
// - Integers, dates, timestamps, booleans and oids: exact. Floats: the order of float64, NaN above infinity, both zeros
//   equal; float4 has the code of the same float8, so that columns compare with constants of either type.
// - A numeric has the code of its float8, a uuid that of its first eight bytes: in order, with ties.
// - An enum has its oid, a text its hash: codes are equal where values are, without an order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "protocol/part_rows.h"

namespace pgwarp
{

inline constexpr std::uint64_t null_code = ~std::uint64_t{0};
inline constexpr std::uint64_t largest_code = null_code - 1;  // of a value

// Returns the code of 64 bits in order: all but the largest number are exact.
constexpr std::uint64_t code_of_bits(std::uint64_t bits)
{
    return bits < largest_code ? bits : largest_code;
}

constexpr std::uint64_t code_of_integer(std::int64_t value)
{
    return code_of_bits(static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63));
}

inline std::uint64_t code_of_float(double value)
{
    // Numbers end below 0xfff0..., the code of infinity; the one above all of them stands for every NaN.
    return std::isnan(value) ? largest_code : ordered_number(value);
}

// Whether another value may have this code, in a type whose values are else exact.
constexpr bool is_tied_code(std::uint64_t code)
{
    return code == largest_code;
}

}  // namespace pgwarp
