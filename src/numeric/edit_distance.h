// Edit distances of text, by bit-parallel dynamic programming: Myers, "A fast bit-vector algorithm for approximate
// string matching based on dynamic programming" (JACM 1999), in blocks of 64 characters of the pattern; transpositions
// as in Hyyro, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003). Nothing here
// allocates or throws, because backends call it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/text_rows.h"

namespace pgwarp
{

enum class EditKind : std::uint8_t {
    levenshtein,     // insertions, deletions, substitutions
    transpositions,  // and swaps of neighbours that no other edit touches: the restricted Damerau distance
    substring,       // the Levenshtein distance of the pattern to the nearest substring of the text
};

inline constexpr std::uint32_t no_edit_limit = 0xffffffff;

// A pattern, prepared once and compared with many texts. It points to the caller's memory. Comparisons write to its
// scratch memory: a thread that compares needs a pattern of its own.
class EditPattern
{
public:
    // Returns the number of words that a pattern of this text needs.
    static std::size_t memory_words(const TextView& pattern);
    // `memory`: memory_words(pattern) words, which live as long as the pattern; the text need not.
    EditPattern(const TextView& pattern, EditKind kind, std::uint64_t* memory);

    std::uint32_t length() const { return length_; }
    // Returns the distance to the text if it is at most `at_most`, otherwise a number above at_most.
    std::uint32_t distance(const TextView& text, std::uint32_t at_most = no_edit_limit) const;

private:
    std::uint32_t length_ = 0;
    EditKind kind_ = EditKind::levenshtein;
    std::uint64_t* memory_ = nullptr;
};

}  // namespace pgwarp
