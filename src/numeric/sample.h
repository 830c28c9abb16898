// Deterministic samples of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pgwarp
{

// `wanted` row numbers out of [0, count), chosen by hash, in growing order; all of them when wanted >= count.
std::vector<std::uint32_t> sample_rows(std::size_t count, std::size_t wanted, std::uint64_t seed);

// The rows of these numbers, copied: [numbers.size()][dimensions].
std::vector<float> gather_rows(const float* rows, std::size_t dimensions, const std::vector<std::uint32_t>& numbers);

}  // namespace pgwarp
