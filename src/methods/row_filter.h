// The predicate of a query, as a search tests rows by it.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/predicates.h"

namespace pgwarp
{

struct RowFilter {
    std::span<const std::uint64_t> predicate;   // as words (protocol/predicates.h); empty: all rows pass
    const std::uint64_t* attributes = nullptr;  // of the index's rows: [rows][columns]
    std::size_t columns = 0;
    std::uint64_t passing = 0;            // about the number of rows that pass, dead ones too
    std::span<const std::uint32_t> some;  // rows of that kind from all over the index, from which a search may begin

    void prefetch(std::uint64_t row) const { __builtin_prefetch(attributes + row * columns); }
    bool passes(std::uint64_t row) const
    {
        return predicate.empty() || pgwarp::passes(predicate, attributes + row * columns);
    }
};

}  // namespace pgwarp
