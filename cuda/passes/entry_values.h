// Canonical values of proposals that are ranked by all of them, not by the best scores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "passes/passes.h"

namespace pgwarp::cuda
{

// Entries a slot has room for at least.
inline constexpr std::uint32_t fewest_entries = 32;

// Elements of rows that one launch reads at most: less than 2 ms of an H100, for which other queries wait. A card that
// is slow in double precision takes some 50 ms.
inline constexpr std::size_t value_launch_elements = std::size_t{1} << 30;

// Entries become keys of their canonical values, ascending; rows [slots][capacity] get theirs. A slot with more than
// there is room for is left alone. Asynchronous, in launches of value_launch_elements.
void value_entries(const ExactRows& rows, const PreparedQueries& queries, const Proposals& proposals,
                   std::uint32_t* row_memory, cudaStream_t stream);

}  // namespace pgwarp::cuda
