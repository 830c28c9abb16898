// The numbers of each text's characters by group, which bound its edit distance to a query from below: an edit changes
// at most one character of either text. Where texts are too far from the query for a bound by grams, these spare many
// comparisons with texts of other lengths.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>

#include "methods/bulk_memory.h"
#include "methods/matchcount/texts_by_length.h"

namespace pgwarp::matchcount
{

class CharacterCounts
{
public:
    static constexpr std::uint32_t groups = 32;            // of characters, by their lowest bits
    static constexpr std::uint32_t most_characters = 255;  // of a text with a bound
    using Counts = std::array<std::uint8_t, groups>;

    CharacterCounts(const TextsByLength& texts, ThreadPool& pool);
    // The counts of a text of at most most_characters.
    static Counts of(const TextView& text);

    // Returns a lower bound of the distance of two texts of these lengths, both at most most_characters.
    static std::uint32_t least_distance(const Counts& a, std::uint32_t length_a, const Counts& b,
                                        std::uint32_t length_b)
    {
        int sum = 0;
        for (std::uint32_t i = 0; i < groups; ++i) sum += std::abs(int{a[i]} - int{b[i]});
        const auto differences = static_cast<std::uint32_t>(sum);
        // Of the longer text, the characters that the other one lacks: differences = length_a + length_b - 2 * common.
        const std::uint32_t common = (length_a + length_b - differences) / 2;
        return (length_a > length_b ? length_a : length_b) - common;
    }
    // Returns the number of the pattern's characters that a text lacks: a lower bound of the distance of the pattern to
    // any of its substrings, because an edit takes away at most one.
    static std::uint32_t missing(const Counts& pattern, const Counts& text)
    {
        int sum = 0;
        for (std::uint32_t i = 0; i < groups; ++i) sum += pattern[i] > text[i] ? pattern[i] - text[i] : 0;
        return static_cast<std::uint32_t>(sum);
    }
    // Texts of at most most_characters only.
    const Counts& at(std::uint32_t place) const { return counts_[place]; }
    std::uint64_t memory_bytes() const { return counts_.size() * sizeof(Counts); }

private:
    BulkVector<Counts> counts_;  // of the places of texts of at most most_characters, which come first
};

}  // namespace pgwarp::matchcount
