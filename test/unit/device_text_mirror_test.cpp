// The texts of an index in device memory: ids of characters, the order by length, the numbers of characters.
#include <gtest/gtest.h>

#include <set>

#include "matchcount/text_mirror.h"
#include "text_fixture.h"

namespace pgwarp::cuda
{
namespace
{

using test::Text;

TextAlphabet alphabet_of(const std::vector<Text>& texts)
{
    return {test::text_rows(texts).view(), caller_alone()};
}

// The numbers of a text's characters by group, as the mirror has them.
std::array<std::uint32_t, TextAlphabet::groups> counts_of(const TextsView& texts, std::uint32_t place)
{
    std::array<std::uint32_t, TextAlphabet::groups> counts{};
    for (std::uint32_t half = 0; half < 2; ++half) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(texts.counts + half * texts.count + place);
        for (std::uint32_t i = 0; i < 16; ++i) counts[half * 16 + i] = bytes[i];
    }
    return counts;
}

TEST(TextAlphabet, CharactersHaveIdsOfTheirOwn)
{
    const TextAlphabet alphabet = alphabet_of({U"abca", U"\u00e4\u4e00", U"\U0001f600"});
    std::set<std::uint8_t> ids;
    for (const char32_t character : Text(U"abc\u00e4\u4e00\U0001f600")) ids.insert(alphabet.id(character));
    EXPECT_EQ(ids.size(), 6U);
    EXPECT_FALSE(ids.contains(0));
    EXPECT_EQ(alphabet.id(U'a'), 1) << "the most frequent one";
    EXPECT_EQ(alphabet.id(U'd'), 0);
    EXPECT_EQ(alphabet.id(U'\U0001f601'), 0);
    EXPECT_FALSE(alphabet.shares());
}

TEST(TextAlphabet, RareCharactersShareIds)
{
    Text all;
    for (std::uint32_t i = 0; i < 256; ++i) all.push_back(0x4e00 + i);
    const Text often = all.substr(0, 191);
    const TextAlphabet alphabet = alphabet_of({all, often});
    EXPECT_TRUE(alphabet.shares());
    std::set<std::uint8_t> ids;
    for (const char32_t character : often) {
        EXPECT_FALSE(alphabet.is_shared(alphabet.id(character)));
        ids.insert(alphabet.id(character));
    }
    EXPECT_EQ(ids.size(), often.size());
    for (const char32_t character : all.substr(191)) EXPECT_TRUE(alphabet.is_shared(alphabet.id(character)));
    all.pop_back();
    EXPECT_FALSE(alphabet_of({all}).shares()) << "of 255 characters";
}

TEST(TextMirror, HoldsTheTextsByLength)
{
    Context context{0, std::uint64_t{64} << 20};
    const Context::Lease stream = context.lease(Priority::build);
    const std::vector<Text> texts = {U"seventeen letters", U"", U"abc", Text(most_text_length + 1, U'x'), U"cab"};
    const pgwarp::matchcount::TextsByLength by_length(test::text_rows(texts).view(), caller_alone());
    const TextMirror mirror(by_length, context.pool(), stream, caller_alone());
    const TextsView view = mirror.view();
    ASSERT_EQ(view.count, 4U) << "without the longest";
    EXPECT_EQ(view.longest, 17U);
    EXPECT_EQ(mirror.characters(), 23U);
    EXPECT_EQ(mirror.device_bytes(), context.pool().used());
    const std::uint32_t rows[] = {1, 2, 4, 0};
    for (std::uint32_t place = 0; place < view.count; ++place) {
        SCOPED_TRACE(place);
        const Text& text = texts[rows[place]];
        EXPECT_EQ(view.rows[place], rows[place]);
        ASSERT_EQ(view.lengths[place], text.size());
        const auto* ids = reinterpret_cast<const std::uint8_t*>(view.ids + view.begins[place]);
        std::array<std::uint32_t, TextAlphabet::groups> counts{};
        for (std::size_t i = 0; i < (text.size() + 15) / 16 * 16; ++i) {
            EXPECT_EQ(ids[i], i < text.size() ? mirror.alphabet().id(text[i]) : 0);
            if (i < text.size()) ++counts[view.groups[ids[i]]];
        }
        EXPECT_EQ(counts_of(view, place), counts);
    }
    const std::vector<std::uint32_t> firsts(view.first_of_length, view.first_of_length + view.longest + 2);
    std::vector<std::uint32_t> wanted = {0, 1, 1, 1};
    wanted.resize(18, 3);
    wanted.push_back(4);
    EXPECT_EQ(firsts, wanted);
    EXPECT_EQ(view.wide, nullptr);
}

TEST(TextMirror, KeepsTheCharactersOfAmbiguousTexts)
{
    Context context{0, std::uint64_t{64} << 20};
    const Context::Lease stream = context.lease(Priority::build);
    Text all;
    for (std::uint32_t i = 0; i < 400; ++i) all.push_back(0x4e00 + i);
    const std::vector<Text> texts = {all.substr(0, 3), all.substr(390, 10), all + all.substr(0, 191)};
    const pgwarp::matchcount::TextsByLength by_length(test::text_rows(texts).view(), caller_alone());
    const TextMirror mirror(by_length, context.pool(), stream, caller_alone());
    const TextsView view = mirror.view();
    EXPECT_EQ(view.lengths[0], 3U);
    EXPECT_EQ(view.lengths[1], 10 | text_is_ambiguous);
    EXPECT_EQ(view.lengths[2], 591 | text_is_ambiguous);
    for (std::uint32_t place = 1; place < 3; ++place) {
        const Text& text = texts[place];
        EXPECT_EQ(Text(view.wide + view.wide_begins[place], view.wide + view.wide_begins[place] + text.size()), text);
    }
}

}  // namespace
}  // namespace pgwarp::cuda
