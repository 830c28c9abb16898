// Canonical values of all proposals of a slot, for searches that do not rank by score first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "passes/passes.h"

namespace pgwarp::cuda
{

// The least capacity of a slot.
inline constexpr std::uint32_t fewest_entries = 32;

// The most elements of rows that one launch reads: less than 2 ms of an H100, for which other queries wait. A card that
// is slow in double precision takes some 50 ms.
inline constexpr std::size_t value_launch_elements = std::size_t{1} << 30;

// Replaces entries by ascending keys of their canonical values and writes their rows to row_memory [slots][capacity]. A
// slot with more entries than its capacity stays unchanged. Asynchronous, in launches of value_launch_elements. Throws
// CudaError.
void value_entries(const ExactRows& rows, const PreparedQueries& queries, const Proposals& proposals,
                   std::uint32_t* row_memory, cudaStream_t stream);

}  // namespace pgwarp::cuda
