// Jaro-Winkler similarity by sorted characters: the occurrences of one character are matched in the order of their
// positions, each with the first one that is near enough and free.
#include "numeric/jaro_winkler.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

// Writes (character, position) pairs in order.
void sort_characters(const TextView& text, std::uint64_t* out)
{
    for (std::uint32_t i = 0; i < text.length; ++i) out[i] = std::uint64_t{text[i]} << 32 | i;
    std::sort(out, out + text.length);
}

// Positions that have a match, a bit each.
class MatchedPositions
{
public:
    MatchedPositions(std::uint64_t* words, std::uint32_t length) : words_(words)
    {
        std::fill_n(words_, (length + 63) / 64, std::uint64_t{0});
    }
    void add(std::uint32_t position) { words_[position / 64] |= std::uint64_t{1} << position % 64; }
    bool has(std::uint32_t position) const { return (words_[position / 64] >> position % 64 & 1) != 0; }

private:
    std::uint64_t* words_;
};

// Returns the number of matches: equal characters at most `window` positions apart.
std::uint32_t match_characters(const std::uint64_t* a, const std::uint64_t* a_end, const std::uint64_t* b,
                               const std::uint64_t* b_end, std::uint32_t window, MatchedPositions& matched_a,
                               MatchedPositions& matched_b)
{
    std::uint32_t matches = 0;
    while (a < a_end && b < b_end) {
        // Pairs of equal characters differ in their positions only.
        if (*a + window < *b) {
            ++a;
        } else if (*b + window < *a) {
            ++b;
        } else {
            matched_a.add(static_cast<std::uint32_t>(*a++));
            matched_b.add(static_cast<std::uint32_t>(*b++));
            ++matches;
        }
    }
    return matches;
}

// Returns the number of matches whose characters are others when both texts' matches are in order.
std::uint32_t count_displaced(const TextView& a, const TextView& b, const MatchedPositions& matched_a,
                              const MatchedPositions& matched_b, std::uint32_t matches)
{
    std::uint32_t displaced = 0;
    for (std::uint32_t i = 0, j = 0; matches > 0; --matches, ++i, ++j) {
        while (!matched_a.has(i)) ++i;
        while (!matched_b.has(j)) ++j;
        displaced += a[i] != b[j] ? 1 : 0;
    }
    return displaced;
}

double jaro(const TextView& a, const TextView& b, std::uint64_t* memory)
{
    std::uint64_t* const sorted_a = memory;
    std::uint64_t* const sorted_b = sorted_a + a.length;
    std::uint64_t* const bits = sorted_b + b.length;
    MatchedPositions matched_a(bits, a.length);
    MatchedPositions matched_b(bits + (a.length + 63) / 64, b.length);
    sort_characters(a, sorted_a);
    sort_characters(b, sorted_b);
    const std::uint32_t half = std::max(a.length, b.length) / 2;
    const std::uint32_t matches = match_characters(sorted_a, sorted_a + a.length, sorted_b, sorted_b + b.length,
                                                   half > 0 ? half - 1 : 0, matched_a, matched_b);
    if (matches == 0) return 0;
    const std::uint32_t transpositions = count_displaced(a, b, matched_a, matched_b, matches) / 2;
    const double m = matches;
    return (m / a.length + m / b.length + (m - transpositions) / m) / 3;
}

}  // namespace

std::size_t jaro_winkler_memory_words(const TextView& a, const TextView& b)
{
    return std::size_t{a.length} + b.length + (a.length + 63) / 64 + (b.length + 63) / 64;
}

double jaro_winkler(const TextView& a, const TextView& b, std::uint64_t* memory)
{
    if (a.length == 0 && b.length == 0) return 1;
    const double similarity = jaro(a, b, memory);
    if (similarity <= 0.7) return similarity;
    const std::uint32_t most = std::min({a.length, b.length, 4U});
    std::uint32_t common = 0;
    while (common < most && a[common] == b[common]) ++common;
    return similarity + common * 0.1 * (1 - similarity);
}

}  // namespace pgwarp
