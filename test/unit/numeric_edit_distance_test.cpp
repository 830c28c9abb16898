// Edit distances by bit vectors against plain dynamic programming.
#include "numeric/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "edit_reference.h"

namespace pgwarp::test
{
namespace
{

constexpr EditKind kinds[] = {EditKind::levenshtein, EditKind::transpositions, EditKind::substring};

// Packed text and the pattern's memory, both of exactly the promised size.
class Compared
{
public:
    Compared(const Characters& pattern, EditKind kind)
        : words_(packed(pattern)),
          memory_(EditPattern::memory_words(view_text(words_)), 0x5555555555555555U),
          pattern_(view_text(words_), kind, memory_.data())
    {
        std::fill(words_.begin(), words_.end(), 0xffffffffU);  // the pattern does not need its text any more
    }
    std::uint32_t distance(const Characters& text, std::uint32_t at_most = no_edit_limit) const
    {
        const std::vector<std::uint32_t> words = packed(text);
        return pattern_.distance(view_text(words), at_most);
    }

private:
    std::vector<std::uint32_t> words_;
    std::vector<std::uint64_t> memory_;
    EditPattern pattern_;
};

// Returns whether the distance is right, and with each limit near it the promise holds.
bool agrees(const Compared& compared, EditKind kind, const Characters& pattern, const Characters& text)
{
    const std::uint32_t wanted = plain_edit_distance(kind, pattern, text);
    if (compared.distance(text) != wanted) return false;
    for (std::uint32_t at_most = wanted < 3 ? 0 : wanted - 3; at_most <= wanted + 3; ++at_most) {
        const std::uint32_t found = compared.distance(text, at_most);
        if (wanted <= at_most ? found != wanted : found <= at_most) return false;
    }
    return true;
}

std::string shown(const Characters& text)
{
    std::string all;
    for (const std::uint32_t character : text) all += std::to_string(character) + " ";
    return all;
}

TEST(EditDistance, AgreesOnManySmallTexts)
{
    std::mt19937 random(1);
    for (int patterns = 0; patterns < 70000; ++patterns) {
        const EditKind kind = kinds[patterns % 3];
        const Alphabet alphabet(random);
        const Characters pattern = alphabet.text(random, random() % 13);
        const Compared compared(pattern, kind);
        for (int texts = 0; texts < 15; ++texts) {
            const Characters text = alphabet.text(random, random() % 13);
            ASSERT_TRUE(agrees(compared, kind, pattern, text)) << shown(pattern) << "; " << shown(text);
        }
    }
}

TEST(EditDistance, AgreesOnLongTexts)
{
    std::mt19937 random(2);
    constexpr std::uint32_t lengths[] = {1, 31, 62, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 257, 300};
    for (const std::uint32_t length : lengths) {
        for (const EditKind kind : kinds) {
            for (int patterns = 0; patterns < 12; ++patterns) {
                const Alphabet alphabet(random);
                const Characters pattern = alphabet.text(random, length);
                const Compared compared(pattern, kind);
                for (std::uint32_t edits = 0; edits < 200; edits = 2 * edits + 1) {
                    const Characters text = alphabet.edited(random, pattern, edits);
                    ASSERT_TRUE(agrees(compared, kind, pattern, text)) << shown(pattern) << "; " << shown(text);
                }
                const Characters other = alphabet.text(random, lengths[random() % std::size(lengths)]);
                ASSERT_TRUE(agrees(compared, kind, pattern, other)) << shown(pattern) << "; " << shown(other);
            }
        }
    }
}

// Limits far below the distance of texts of equal lengths leave narrow bands.
TEST(EditDistance, EveryLimitOfLongTexts)
{
    std::mt19937 random(3);
    for (const EditKind kind : kinds) {
        for (int patterns = 0; patterns < 20; ++patterns) {
            const Alphabet alphabet(random);
            const Characters pattern = alphabet.text(random, 250 + random() % 50);
            const Compared compared(pattern, kind);
            const Characters text = alphabet.edited(random, pattern, random() % 60);
            const std::uint32_t wanted = plain_edit_distance(kind, pattern, text);
            for (std::uint32_t at_most = 0; at_most < 310; ++at_most) {
                const std::uint32_t found = compared.distance(text, at_most);
                ASSERT_TRUE(wanted <= at_most ? found == wanted : found > at_most) << at_most << ": " << found;
            }
        }
    }
}

TEST(EditDistance, KnownDistances)
{
    const auto distance = [](EditKind kind, const char* pattern, const char* text) {
        const Characters a(pattern, pattern + std::string_view(pattern).size());
        const Characters b(text, text + std::string_view(text).size());
        return Compared(a, kind).distance(b);
    };
    EXPECT_EQ(distance(EditKind::levenshtein, "kitten", "sitting"), 3U);
    EXPECT_EQ(distance(EditKind::levenshtein, "abcd", "abdc"), 2U);
    EXPECT_EQ(distance(EditKind::transpositions, "abcd", "abdc"), 1U);
    EXPECT_EQ(distance(EditKind::transpositions, "ca", "abc"), 3U);  // 2 where swapped characters may be edited again
    EXPECT_EQ(distance(EditKind::substring, "neighbor", "in the neighbourhood"), 1U);
    EXPECT_EQ(distance(EditKind::substring, "abc", "xyz"), 3U);
}

TEST(EditDistance, LongestTexts)
{
    std::mt19937 random(4);
    Characters pattern(max_text_characters);
    for (std::uint32_t i = 0; i < pattern.size(); ++i) pattern[i] = i * 16 + 1;  // all different
    Characters text = pattern;
    for (std::uint32_t i = 100; i < text.size(); i += 1000) text[i] = 7;
    text.erase(text.begin() + 30000);
    EXPECT_EQ(Compared(pattern, EditKind::levenshtein).distance(text, 100), 67U);
    EXPECT_EQ(Compared(pattern, EditKind::transpositions).distance(text, 67), 67U);
    EXPECT_GT(Compared(pattern, EditKind::levenshtein).distance(text, 66), 66U);
    const Characters same(max_text_characters, 'a');
    EXPECT_EQ(Compared(same, EditKind::levenshtein).distance(same, 0), 0U);
    EXPECT_GT(Compared(same, EditKind::levenshtein).distance(pattern, 1000), 1000U);
}

// A comparison of the longest texts can be left in the middle.
TEST(EditDistance, LongComparisonsPoll)
{
    struct Left {
    };
    std::mt19937 random(5);
    const Alphabet alphabet(random);
    const Characters pattern = alphabet.text(random, max_text_characters);
    const std::vector<std::uint32_t> text = packed(alphabet.text(random, max_text_characters));
    for (const EditKind kind : {EditKind::levenshtein, EditKind::transpositions, EditKind::substring}) {
        const std::vector<std::uint32_t> words = packed(pattern);
        std::vector<std::uint64_t> memory(EditPattern::memory_words(view_text(words)));
        const EditPattern compared(view_text(words), kind, memory.data());
        int polls = 0;
        const EditPoll counting = {[](void* count) { ++*static_cast<int*>(count); }, &polls};
        const std::uint32_t distance = compared.distance(view_text(text), no_edit_limit, counting);
        EXPECT_GT(polls, 100);
        EXPECT_EQ(compared.distance(view_text(text)), distance);
        polls = 0;
        const EditPoll leaving = {[](void* count) {
                                      if (++*static_cast<int*>(count) == 3) throw Left();
                                  },
                                  &polls};
        EXPECT_THROW(compared.distance(view_text(text), no_edit_limit, leaving), Left);
        EXPECT_EQ(polls, 3);
    }
}

TEST(EditDistance, MemoryIsLinear)
{
    Characters pattern(max_text_characters);
    for (std::uint32_t i = 0; i < pattern.size(); ++i) pattern[i] = i * 16 + 1;
    for (const std::size_t length : {0U, 1U, 64U, 65U, 1000U, max_text_characters}) {
        const Characters start(pattern.begin(), pattern.begin() + static_cast<std::ptrdiff_t>(length));
        const std::vector<std::uint32_t> words = packed(start);
        EXPECT_LT(EditPattern::memory_words(view_text(words)), 9 * length + 100);
    }
}

}  // namespace
}  // namespace pgwarp::test
