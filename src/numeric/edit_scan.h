// Edit distances of one pattern to many rows, several rows at a time by SIMD: one row a lane, one block of the pattern
// a step (numeric/edit_distance.h has the algorithm and the scalar form).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numeric/edit_distance.h"
#include "protocol/rows.h"

namespace pgwarp
{

// A Levenshtein pattern for many rows. Const calls are thread-safe.
class EditScan
{
public:
    explicit EditScan(const TextView& pattern);

    // out[i] = the distance to row ids[i] of `rows` (texts) if it is at most `at_most`, otherwise a number above it.
    // Neighbouring ids of like lengths are fastest.
    void distances(const RowView& rows, std::span<const std::uint32_t> ids, std::uint32_t at_most,
                   std::span<std::uint32_t> out) const;

private:
    std::vector<std::uint64_t> memory_;
};

}  // namespace pgwarp
