// Deterministic samples of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pgwarp
{

// Returns `wanted` row numbers out of [0, count), chosen by hash, ascending; all of them when wanted >= count. Out of
// many rows one of each of `wanted` equal spans is chosen, in time proportional to `wanted`.
std::vector<std::uint32_t> sample_rows(std::size_t count, std::size_t wanted, std::uint64_t seed);

// Returns a copy of the rows with these numbers: [numbers.size()][dimensions].
std::vector<float> gather_rows(const float* rows, std::size_t dimensions, const std::vector<std::uint32_t>& numbers);

}  // namespace pgwarp
