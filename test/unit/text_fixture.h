// Texts for tests: literals, rows of an index, random texts and their edits.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "edit_reference.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp::test
{

using Text = std::u32string;

inline std::vector<std::uint32_t> packed(const Text& text)
{
    return packed(Characters(text.begin(), text.end()));
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

inline OwnedRows random_texts(std::size_t count, std::size_t longest, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<Text> texts;
    while (texts.size() < count) texts.push_back(random_text(random, random() % (longest + 1), 5));
    return text_rows(texts);
}

inline Text text_of(const RowView& rows, std::size_t row)
{
    const TextView view = view_text(rows.list(row));
    Text text;
    for (std::uint32_t i = 0; i < view.length; ++i) text.push_back(view[i]);
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
    return plain_edit_distance(EditKind::levenshtein, Characters(a.begin(), a.end()), Characters(b.begin(), b.end()));
}

}  // namespace pgwarp::test
