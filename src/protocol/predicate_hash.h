// A hash and the equality of predicates (protocol/predicates.h), by which equal ones are found among thousands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pgwarp
{

// Of the words at both ends: long predicates of which these agree are compared in any case.
inline std::uint64_t predicate_hash(std::span<const std::uint64_t> predicate)
{
    constexpr std::size_t most = 8;  // words of each end
    const std::size_t read = predicate.size() < most ? predicate.size() : most;
    std::uint64_t hash = predicate.size();
    const auto add = [&](std::uint64_t word) {
        hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 29;
    };
    for (std::size_t i = 0; i < read; ++i) add(predicate[i]);
    for (std::size_t i = 0; i < read; ++i) add(predicate[predicate.size() - 1 - i]);
    return hash;
}

inline bool are_equal_predicates(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b)
{
    return a.size() == b.size() && (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
}

}  // namespace pgwarp
