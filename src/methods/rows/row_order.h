// The order of a build's rows: by their addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/parallel.h"
#include "protocol/format.h"

namespace pgwarp
{

// order[i] is the number of the row that comes at place i in order of tids; equal tids keep their order.
std::vector<std::uint32_t> order_of(std::span<const Tid> tids, ThreadPool& pool);

// Puts rows [order.size()] of `row_bytes` bytes each into that order, in place.
void permute_rows(std::byte* rows, std::size_t row_bytes, std::vector<std::uint32_t> order, ThreadPool& pool);

}  // namespace pgwarp
