// The ranks of a few keys.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgwarp
{

// ranks[i] = the number of keys below key i, of different keys. Takes count^2 comparisons without branches, by SIMD: up
// to some hundred keys less time than a sort.
void rank_keys(const std::uint64_t* keys, std::size_t count, std::uint32_t* ranks);

}  // namespace pgwarp
