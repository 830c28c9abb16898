// Canonical values of proposals that are ranked by all of them, not by the best scores.
#pragma once

#include <cstdint>

#include "exact/passes.h"

namespace pgwarp::cuda
{

// Entries a slot has room for at least.
inline constexpr std::uint32_t fewest_entries = 32;

// Entries become keys of their canonical values, ascending; rows [slots][capacity] get theirs. A slot with more than
// there is room for is left alone. Asynchronous; each launch takes less than 2 ms, whatever the entries' number.
void value_entries(const ExactRows& rows, const PreparedQueries& queries, const Proposals& proposals,
                   std::uint32_t* row_memory, cudaStream_t stream);

}  // namespace pgwarp::cuda
