// Texts for tests: code points, their packed rows, random ones, and their edit distance by the plain table.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "methods/rows/owned_rows.h"
#include "protocol/text_rows.h"

namespace pgwarp::test
{

using Text = std::u32string;

inline std::vector<std::uint32_t> packed(const Text& text)
{
    const std::vector<std::uint32_t> characters(text.begin(), text.end());
    std::vector<std::uint32_t> words(
        text_words(static_cast<std::uint32_t>(characters.size()), text_width(characters)));
    pack_text(characters, words.data());
    return words;
}

inline OwnedRows text_rows(const std::vector<Text>& texts)
{
    OwnedRows rows;
    for (const Text& text : texts) {
        const std::vector<std::uint32_t> words = packed(text);
        const std::uint64_t offsets[2] = {0, words.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = words.data();
        rows.append(row);
    }
    return rows;
}

// Some `length` characters from `first` on, of an alphabet of `letters`.
inline Text random_text(std::mt19937& random, std::size_t length, std::uint32_t letters, char32_t first = U'a')
{
    Text text;
    while (text.size() < length) text.push_back(first + random() % letters);
    return text;
}

// The text after random insertions, deletions and substitutions.
inline Text edited(std::mt19937& random, Text text, std::size_t edits, std::uint32_t letters)
{
    for (; edits > 0; --edits) {
        const std::size_t at = random() % (text.size() + 1);
        const char32_t letter = U'a' + random() % letters;
        const std::uint32_t kind = random() % 3;
        if (kind == 0 || at == text.size()) {
            text.insert(at, 1, letter);
        } else if (kind == 1) {
            text.erase(at, 1);
        } else {
            text[at] = letter;
        }
    }
    return text;
}

inline std::uint32_t plain_distance(const Text& a, const Text& b)
{
    std::vector<std::uint32_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<std::uint32_t>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::uint32_t diagonal = row[0];
        row[0] = static_cast<std::uint32_t>(i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::uint32_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace pgwarp::test
