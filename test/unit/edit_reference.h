// Texts for tests of edit distances, and the distances by plain dynamic programming.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "numeric/edit_distance.h"

namespace pgwarp::test
{

using Characters = std::vector<std::uint32_t>;

inline std::vector<std::uint32_t> packed(const Characters& text)
{
    std::vector<std::uint32_t> words(text_words(static_cast<std::uint32_t>(text.size()), text_width(text)));
    pack_text(text, words.data());
    return words;
}

// Two to four characters of any width.
class Alphabet
{
public:
    explicit Alphabet(std::mt19937& random)
    {
        constexpr std::uint32_t firsts[] = {'a', 0xfe, 0x3b1, 0x4e00, 0xfffe, 0x1f600};
        const std::uint32_t step = random() % 2 == 0 ? 1 : 256;
        const std::uint32_t first = firsts[random() % std::size(firsts)];
        for (std::uint32_t i = 0; i < 2 + random() % 3; ++i) characters_.push_back(first + i * step);
    }
    std::uint32_t character(std::mt19937& random) const { return characters_[random() % characters_.size()]; }
    Characters text(std::mt19937& random, std::size_t length) const
    {
        Characters text(length);
        for (std::uint32_t& each : text) each = character(random);
        return text;
    }
    // Inserts, deletes, replaces or swaps at random places.
    Characters edited(std::mt19937& random, Characters text, std::uint32_t edits) const
    {
        for (std::uint32_t i = 0; i < edits; ++i) {
            const auto at = text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1));
            const auto left = text.end() - at;
            const unsigned edit = random() % 4;
            if (edit == 0) text.insert(at, character(random));
            if (edit == 1 && left > 0) text.erase(at);
            if (edit == 2 && left > 0) *at = character(random);
            if (edit == 3 && left > 1) std::swap(at[0], at[1]);
        }
        return text;
    }

private:
    Characters characters_;
};

inline std::uint32_t plain_edit_distance(EditKind kind, const Characters& pattern, const Characters& text)
{
    const std::size_t width = text.size() + 1;
    std::vector<std::uint32_t> table((pattern.size() + 1) * width, 0);
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& { return table[i * width + j]; };
    for (std::size_t j = 1; j < width && kind != EditKind::substring; ++j) at(0, j) = static_cast<std::uint32_t>(j);
    for (std::size_t i = 1; i <= pattern.size(); ++i) {
        at(i, 0) = static_cast<std::uint32_t>(i);
        for (std::size_t j = 1; j < width; ++j) {
            std::uint32_t best = at(i - 1, j - 1) + (pattern[i - 1] == text[j - 1] ? 0 : 1);
            best = std::min({best, at(i - 1, j) + 1, at(i, j - 1) + 1});
            const bool swapped = kind == EditKind::transpositions && i > 1 && j > 1 && pattern[i - 1] == text[j - 2] &&
                                 pattern[i - 2] == text[j - 1];
            at(i, j) = swapped ? std::min(best, at(i - 2, j - 2) + 1) : best;
        }
    }
    const auto last = table.end() - static_cast<std::ptrdiff_t>(width);
    return kind == EditKind::substring ? *std::min_element(last, table.end()) : table.back();
}

}  // namespace pgwarp::test
