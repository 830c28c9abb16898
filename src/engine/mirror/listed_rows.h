// A small part of an inverted file: so few delta rows that most lists have one or none. Their vectors are compared in
// the logs, which takes less than preparing a query for each list.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/mirror/delta.h"
#include "methods/method.h"

namespace pgwarp
{

// The average number of rows in a list up to which such a part is made.
inline constexpr std::uint64_t few_rows_of_list = 2;

// A searcher of `rows`, which it borrows, in the lists that the index has probed (SearchBatch::probed; else in all).
// lists[i] < list_count: of row i. `effort` names the parameter for the number of probed lists. A result holds the k
// nearest live rows of those lists, unordered, and rows that may be as near within the error of scores.
std::unique_ptr<Searcher> make_listed_rows(const IndexShape& shape, const char* effort,
                                           std::span<const DeltaEntry> rows, std::span<const std::uint32_t> lists,
                                           std::size_t list_count);

}  // namespace pgwarp
