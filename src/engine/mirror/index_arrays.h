// The arrays of an index that the engine itself knows: addresses, attributes, and those whose number of rows it checks.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "protocol/format.h"

namespace pgwarp
{

inline bool is_named(const ArrayShape& array, const char* name)
{
    return std::strcmp(array.name, name) == 0;
}

// The arrays of the method: all but addresses and attributes, which the mirror holds.
std::vector<ArrayShape> method_arrays(const std::vector<ArrayShape>& arrays);

// Checks that both tid arrays are there, once, with an entry for each row. Throws BadRequest.
void check_tid_arrays(const std::vector<ArrayShape>& arrays, std::uint64_t rows);

// Checks that attributes are there, once, where the shape says so, and only there; and that lists and vectors have the
// rows of the index. Throws BadRequest.
void check_row_arrays(const std::vector<ArrayShape>& arrays, std::uint64_t rows, std::uint32_t columns);

// Estimates the values that comparing a row reads: dimensions, or words of a list.
double count_row_values(const IndexShape& shape, std::uint64_t rows, const std::vector<ArrayShape>& arrays);

}  // namespace pgwarp
