// A small part of an inverted file: so few fresh rows that most lists have one or none. Their vectors are compared as
// they lie in the logs, which takes less than a query's preparation for every list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/mirror/delta_part.h"

namespace pgwarp
{

// How many rows a list may have on average.
inline constexpr std::uint64_t few_rows_of_list = 2;

// A searcher of `rows` by the lists that an index has probed (SearchBatch::probed; else all), which borrows them.
// lists[i] < list_count: of row i. `effort` names the parameter that says how many lists are probed. What it returns
// holds the k nearest live rows of those lists, in no order, and what rounding may have put before them.
std::unique_ptr<Searcher> make_listed_rows(const IndexShape& shape, const char* effort,
                                           std::span<const DeltaPart::Row> rows, std::span<const std::uint32_t> lists,
                                           std::size_t list_count);

}  // namespace pgwarp
