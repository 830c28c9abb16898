// Shotgun of text (GENIE, section 6.1): a text of L characters becomes its ordered n-grams (gram, i), the i-th equal
// gram of the text, each hashed to a keyword. Texts are padded with n - 1 marks at both ends, so that texts shorter
// than n have grams too: L + n - 1 in all.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/text_rows.h"

namespace pgwarp::matchcount
{

struct GramForm {
    std::uint32_t n = 3;      // characters of a gram
    std::uint32_t bits = 32;  // of a keyword
};

// Appends the keywords of a text. The ordinal of an equal gram is counted after the gram was hashed: texts that share
// grams then share at least as many keywords, whatever the hash, so that a count can only exceed the true one.
void append_grams(const TextView& text, const GramForm& form, std::vector<std::uint32_t>& keywords);

// Appends the keywords of the grams without marks: none of a text shorter than a gram. A text that holds this one
// shares all of them with its append_grams().
void append_inner_grams(const TextView& text, const GramForm& form, std::vector<std::uint32_t>& keywords);

// Returns the least number of keywords that two texts of these lengths share when their distance is at most `edits`
// (theorem 6.1 with padding: an edit changes at most n grams). Zero or less: no bound.
constexpr std::int64_t least_shared_grams(std::uint32_t a, std::uint32_t b, const GramForm& form, std::uint32_t edits)
{
    return std::int64_t{a > b ? a : b} + form.n - 1 - std::int64_t{form.n} * edits;
}

}  // namespace pgwarp::matchcount
