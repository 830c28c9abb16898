// What texts have in common: grams, and counts of characters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "methods/matchcount/character_counts.h"
#include "methods/matchcount/grams.h"
#include "text_fixture.h"

namespace pgwarp::test
{
namespace
{

using matchcount::GramForm;

std::vector<std::uint32_t> grams(const Text& text, const GramForm& form)
{
    std::vector<std::uint32_t> keywords;
    matchcount::append_grams(view_text(packed(text)), form, keywords);
    return keywords;
}

// The number of pairs of equal elements.
std::uint64_t equal_pairs(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b)
{
    std::map<std::uint32_t, std::uint64_t> counts;
    for (const std::uint32_t keyword : a) ++counts[keyword];
    std::uint64_t pairs = 0;
    for (const std::uint32_t keyword : b) {
        const auto found = counts.find(keyword);
        if (found != counts.end()) pairs += found->second;
    }
    return pairs;
}

// The number of grams in common, each as often as in both, by the characters themselves.
std::uint64_t common_grams(const Text& a, const Text& b, std::uint32_t n)
{
    const auto counted = [n](const Text& text) {
        const Text padded = Text(n - 1, U'\uffff') + text + Text(n - 1, U'\uffff');
        std::map<Text, std::uint64_t> counts;
        for (std::size_t at = 0; at + n <= padded.size(); ++at) ++counts[padded.substr(at, n)];
        return counts;
    };
    const auto of_b = counted(b);
    std::uint64_t common = 0;
    for (const auto& [gram, count] : counted(a)) {
        const auto found = of_b.find(gram);
        if (found != of_b.end()) common += std::min(count, found->second);
    }
    return common;
}

TEST(MatchcountGrams, NumberIsThatOfThePaddedText)
{
    for (std::uint32_t n = 2; n <= 6; ++n) {
        EXPECT_EQ(grams(U"", {n, 32}).size(), n - 1);
        EXPECT_EQ(grams(U"a", {n, 32}).size(), n);
        EXPECT_EQ(grams(U"banana", {n, 32}).size(), 5 + n);
    }
}

// The paper's example 6.1: aabaab has the ordered 3-grams (aab,0), (aba,0), (baa,0), (aab,1).
TEST(MatchcountGrams, RepeatedGramsDiffer)
{
    std::vector<std::uint32_t> keywords = grams(U"aabaab", {3, 32});
    std::sort(keywords.begin(), keywords.end());
    EXPECT_EQ(std::unique(keywords.begin(), keywords.end()), keywords.end());
    // One aab of the two, aba, and the first two grams with marks.
    EXPECT_EQ(equal_pairs(grams(U"aabaab", {3, 32}), grams(U"aaba", {3, 32})), 4U);
    EXPECT_EQ(equal_pairs(grams(U"aabaab", {3, 32}), grams(U"aabaab", {3, 32})), 8U);
}

TEST(MatchcountGrams, DependOnCharactersAlone)
{
    const Text narrow = U"abc";
    std::vector<std::uint32_t> wide(3);
    wide = {U'a', U'b', U'c'};
    std::vector<std::uint32_t> keywords;
    matchcount::append_grams({3, 4, wide.data()}, {}, keywords);
    EXPECT_EQ(keywords, grams(narrow, {}));
}

TEST(MatchcountGrams, CountsExceedTheTrueOnesOnly)
{
    std::mt19937 random(1);
    std::uint64_t exact = 0;
    constexpr int pairs = 4000;
    for (int i = 0; i < pairs; ++i) {
        const std::uint32_t n = 2 + random() % 5;
        const Text a = random_text(random, random() % 40, 3);
        const Text b = edited(random, a, random() % 10, 3);
        const std::uint64_t common = common_grams(a, b, n);
        for (const std::uint32_t bits : {1U, 4U, 12U})
            ASSERT_GE(equal_pairs(grams(a, {n, bits}), grams(b, {n, bits})), common);
        exact += equal_pairs(grams(a, {n, 32}), grams(b, {n, 32})) == common ? 1 : 0;
    }
    EXPECT_EQ(exact, pairs);
}

TEST(MatchcountGrams, EditsLeaveTheLeastShared)
{
    std::mt19937 random(2);
    std::uint64_t attained = 0;
    for (int i = 0; i < 4000; ++i) {
        const GramForm form{2 + static_cast<std::uint32_t>(random() % 5), 32};
        const Text a = random_text(random, random() % 60, 20);
        const Text b = edited(random, a, random() % 8, 20);
        const std::int64_t least = matchcount::least_shared_grams(
            static_cast<std::uint32_t>(a.size()), static_cast<std::uint32_t>(b.size()), form, plain_distance(a, b));
        const std::uint64_t shared = equal_pairs(grams(a, form), grams(b, form));
        ASSERT_GE(static_cast<std::int64_t>(shared), least);
        attained += static_cast<std::int64_t>(shared) == least && least > 0 ? 1 : 0;
    }
    EXPECT_GT(attained, 100U);
}

TEST(MatchcountCharacters, BoundDistancesFromBelow)
{
    std::mt19937 random(14);
    std::uint64_t attained = 0;
    for (int i = 0; i < 4000; ++i) {
        const Text a = random_text(random, random() % 60, 40, i % 2 == 0 ? U'a' : U'\u4e00');
        const Text b =
            random() % 2 == 0 ? edited(random, a, random() % 12, 40) : random_text(random, random() % 60, 40);
        const auto of = [](const Text& text) { return matchcount::CharacterCounts::of(view_text(packed(text))); };
        const std::uint32_t least = matchcount::CharacterCounts::least_distance(
            of(a), static_cast<std::uint32_t>(a.size()), of(b), static_cast<std::uint32_t>(b.size()));
        const std::uint32_t distance = plain_distance(a, b);
        ASSERT_LE(least, distance);
        attained += least == distance && least > 0 ? 1 : 0;
    }
    EXPECT_GT(attained, 100U);
}

}  // namespace
}  // namespace pgwarp::test
