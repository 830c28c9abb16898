// Candidates as integers in their order. Integers compare in one instruction, and a selection of them needs no branch
// that depends on the data.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pgwarp
{

// A row with its score, ordered by (score, row).
struct Candidate {
    float score;
    std::uint32_t row;
    bool operator<(const Candidate& other) const
    {
        return score != other.score ? score < other.score : row < other.row;
    }
};

// Returns the key of a candidate: keys are ordered as (score, row). The score is no NaN; -0 becomes 0.
inline std::uint64_t ordered_key(float score, std::uint32_t row)
{
    const auto bits = std::bit_cast<std::int32_t>(score + 0.0F);
    const auto ordered = static_cast<std::uint32_t>(bits ^ ((bits >> 31) | INT32_MIN));
    return std::uint64_t{ordered} << 32 | row;
}

inline Candidate candidate_of(std::uint64_t key)
{
    const auto ordered = static_cast<std::int32_t>(key >> 32);
    const std::int32_t bits = ordered < 0 ? ordered ^ INT32_MIN : ~ordered;
    return {std::bit_cast<float>(bits), static_cast<std::uint32_t>(key)};
}

// Moves the `count` smallest keys to the front, in any order, the largest of them last. 0 < count <= keys.size().
void select_smallest(std::span<std::uint64_t> keys, std::size_t count);

}  // namespace pgwarp
