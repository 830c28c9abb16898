// The Jaccard distance of the 3-grams of two texts, as multisets: 1 - |A and B| / |A or B|. Each text is padded with
// two marks at both ends, so that a text of L characters has L + 2 grams. Nothing here allocates or throws, because
// backends call it too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "protocol/text_rows.h"

namespace pgwarp
{

inline constexpr std::uint32_t distance_gram = 3;  // characters of a gram

// The number of grams of a text.
constexpr std::uint32_t distance_grams(std::uint32_t length)
{
    return length + distance_gram - 1;
}

// The distance of two texts that have `common` grams in common.
inline double gram_distance(std::uint32_t length_a, std::uint32_t length_b, std::uint32_t common)
{
    const std::uint32_t all = distance_grams(length_a) + distance_grams(length_b) - common;
    return 1.0 - static_cast<double>(common) / all;
}

// A text whose grams are prepared once. It points to the caller's memory. Comparisons write to it: a thread that
// compares needs a pattern of its own. A comparison with n characters takes about n log(length) steps.
class GramPattern
{
public:
    // Returns the number of words that a pattern of this text needs.
    static std::size_t memory_words(const TextView& pattern);
    // `memory`: memory_words(pattern) words, which live as long as the pattern; the text need not.
    GramPattern(const TextView& pattern, std::uint64_t* memory);

    double distance(const TextView& text) const;

private:
    struct Gram {
        std::array<std::uint32_t, distance_gram> characters;
        std::uint32_t count;         // in the pattern
        mutable std::uint32_t left;  // of these, not yet met in the text
    };

    std::uint32_t length_;
    std::uint32_t count_ = 0;
    Gram* grams_;  // [count_], ascending
};

}  // namespace pgwarp
