// Jaro-Winkler similarity against the textbook's loops.
#include "numeric/jaro_winkler.h"

#include <gtest/gtest.h>

#include <string_view>

#include "edit_reference.h"

namespace pgwarp::test
{
namespace
{

double similarity(const Characters& a, const Characters& b)
{
    const std::vector<std::uint32_t> words_a = packed(a);
    const std::vector<std::uint32_t> words_b = packed(b);
    const TextView view_a = view_text(words_a);
    const TextView view_b = view_text(words_b);
    std::vector<std::uint64_t> memory(jaro_winkler_memory_words(view_a, view_b), 0x5555555555555555U);
    return jaro_winkler(view_a, view_b, memory.data());
}

double similarity(std::string_view a, std::string_view b)
{
    return similarity(Characters(a.begin(), a.end()), Characters(b.begin(), b.end()));
}

// Each character takes the first free equal one within the window.
double plain_similarity(const Characters& a, const Characters& b)
{
    if (a.empty() && b.empty()) return 1;
    const int window = std::max(static_cast<int>(std::max(a.size(), b.size())) / 2 - 1, 0);
    std::vector<bool> taken(b.size());
    Characters matched_a;
    Characters matched_b;
    for (int i = 0; i < static_cast<int>(a.size()); ++i) {
        for (int j = std::max(i - window, 0); j <= i + window && j < static_cast<int>(b.size()); ++j) {
            if (taken[j] || a[i] != b[j]) continue;
            taken[j] = true;
            matched_a.push_back(a[i]);
            break;
        }
    }
    for (std::size_t j = 0; j < b.size(); ++j) {
        if (taken[j]) matched_b.push_back(b[j]);
    }
    if (matched_a.empty()) return 0;
    std::size_t displaced = 0;
    for (std::size_t i = 0; i < matched_a.size(); ++i) displaced += matched_a[i] != matched_b[i] ? 1 : 0;
    const auto m = static_cast<double>(matched_a.size());
    const double jaro = (m / static_cast<double>(a.size()) + m / static_cast<double>(b.size()) +
                         (m - static_cast<double>(displaced / 2)) / m) /
                        3;
    std::size_t common = 0;
    while (common < std::min({a.size(), b.size(), std::size_t{4}}) && a[common] == b[common]) ++common;
    return jaro > 0.7 ? jaro + static_cast<double>(common) * 0.1 * (1 - jaro) : jaro;
}

TEST(JaroWinkler, KnownSimilarities)
{
    EXPECT_NEAR(similarity("MARTHA", "MARHTA"), 0.9611, 0.00005);
    EXPECT_NEAR(similarity("DIXON", "DICKSONX"), 0.8133, 0.00005);
    EXPECT_NEAR(similarity("DWAYNE", "DUANE"), 0.84, 0.00005);
    EXPECT_NEAR(similarity("ABROMS", "ABRAMS"), 0.9222, 0.00005);
    EXPECT_EQ(similarity("same", "same"), 1);
    EXPECT_EQ(similarity("abc", "xyz"), 0);
    EXPECT_EQ(similarity("", ""), 1);
    EXPECT_EQ(similarity("", "a"), 0);
    EXPECT_EQ(similarity("a", "a"), 1);
    EXPECT_EQ(similarity("ab", "ba"), 0);  // the window is one position
}

TEST(JaroWinkler, AgreesWithPlainLoopsAndIsSymmetric)
{
    std::mt19937 random(8);
    for (int i = 0; i < 100000; ++i) {
        const Alphabet alphabet(random);
        const Characters a = alphabet.text(random, random() % (i % 100 == 0 ? 150 : 12));
        const Characters b =
            i % 2 == 0 ? alphabet.edited(random, a, random() % 6) : alphabet.text(random, random() % 12);
        ASSERT_EQ(similarity(a, b), plain_similarity(a, b));
        ASSERT_NEAR(similarity(b, a), similarity(a, b), 1e-15);
    }
}

}  // namespace
}  // namespace pgwarp::test
