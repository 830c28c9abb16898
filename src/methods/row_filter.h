// The filter of a query, by which a search tests rows: a predicate, or a bitmap of the rows that fail.
#pragma once

#include <cstdint>
#include <span>

#include "methods/row_bitmap.h"
#include "protocol/predicates.h"

namespace pgwarp
{

struct RowFilter {
    std::span<const std::uint64_t> predicate;   // as words (protocol/predicates.h); empty: all rows pass
    const std::uint64_t* attributes = nullptr;  // of the index's rows: [rows][columns]
    std::size_t columns = 0;
    std::uint64_t passing = 0;            // about the number of rows that pass, dead ones too
    std::span<const std::uint32_t> some;  // rows of that kind from all over the index, from which a search may begin
    RowBitmap fails = {};                 // rows that fail besides; empty: none

    bool passes_all() const { return predicate.empty() && fails.empty(); }
    void prefetch(std::uint64_t row) const
    {
        if (predicate.empty()) {
            __builtin_prefetch(fails.data() + row / 64);
        } else {
            __builtin_prefetch(attributes + row * columns);
        }
    }
    bool passes(std::uint64_t row) const
    {
        return !bit_is_set(fails, row) && (predicate.empty() || pgwarp::passes(predicate, attributes + row * columns));
    }
};

}  // namespace pgwarp
