// Groups of rows of bits (row_groups.h). Centres begin at random rows and move to the most frequent bits of their rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "methods/graph/space.h"
#include "methods/method.h"

namespace pgwarp
{

// Returns `wanted` centres, rows of bits: [wanted][space.dimensions()].
std::vector<float> choose_bit_centres(const GraphSpace& space, std::size_t wanted, std::uint64_t seed,
                                      const BuildProgress& progress, ThreadPool& pool);

// Returns the nearest centre of each row; of equal ones the first.
std::vector<std::uint32_t> assign_bits(const GraphSpace& space, std::span<const float> centres,
                                       const BuildProgress& progress, ThreadPool& pool);

}  // namespace pgwarp
