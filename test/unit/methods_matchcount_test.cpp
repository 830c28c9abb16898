// The index method matchcount over texts: its grams, and answers compared with a plain scan.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/text_search.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "text_fixture.h"

namespace pgwarp::test
{
namespace
{

using matchcount::GramForm;

constexpr double from_front = -std::numeric_limits<double>::infinity();

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

IndexShape text_shape()
{
    return Index::shape_of(Method::matchcount, Metric::edit, 0, ElementType::text);
}

// All live rows in order of (distance, row).
std::vector<RowResult> all_in_order(const std::vector<Text>& texts, const Text& query, RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < texts.size(); ++i)
        if (!bit_is_set(dead, i)) all.push_back({static_cast<double>(plain_distance(query, texts[i])), i});
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

void expect_equal(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
    }
}

// Texts of an index, many of them equal or near to others.
std::vector<Text> related_texts(std::mt19937& random, std::size_t count, std::size_t longest, std::uint32_t letters)
{
    std::vector<Text> texts;
    while (texts.size() < count) {
        if (texts.empty() || random() % 3 == 0) {
            texts.push_back(random_text(random, random() % (longest + 1), letters));
        } else {
            texts.push_back(edited(random, texts[random() % texts.size()], random() % 4, letters));
        }
    }
    return texts;
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

// Small indexes with few candidates, so that every part of the search decides some answers.
TEST(MatchcountSearch, AnswersAreThoseOfAScan)
{
    ThreadPool pool(2);
    std::mt19937 random(3);
    matchcount::CountWorkspace workspace;
    std::uint64_t candidates = 0;
    std::uint64_t proved = 0;
    std::uint64_t cases = 0;
    for (int index_number = 0; index_number < 1000; ++index_number) {
        const std::uint32_t letters = 1 + random() % 6;
        const std::size_t longest = random() % 4 == 0 ? 90 : 14;
        const std::vector<Text> texts = related_texts(random, random() % 60, longest, letters);
        const GramForm form{2 + static_cast<std::uint32_t>(random() % 5), random() % 4 == 0 ? 4U : 32U};
        const matchcount::TextIndex index = make_text_index(text_rows(texts).view(), form, pool);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        const std::vector<std::uint64_t> dead_places = index.texts.bitmap_of_places(dead);
        for (int query_number = 0; query_number < 12; ++query_number) {
            const bool near = !texts.empty() && random() % 3 > 0;
            const Text text = near ? edited(random, texts[random() % texts.size()], random() % 6, letters)
                                   : random_text(random, random() % 20, letters);
            const std::vector<std::uint32_t> words = packed(text);
            const std::vector<RowResult> all = all_in_order(texts, text, dead);
            for (int settings = 0; settings < 10; ++settings, ++cases) {
                matchcount::TextQuery query;
                query.text = view_text(words);
                query.k = 1 + random() % (random() % 4 == 0 ? 70 : 4);
                query.dead = dead_places;
                query.least_candidates = 1 + random() % 12;
                auto after = all.begin();
                if (random() % 5 == 0 && !all.empty()) {
                    after += static_cast<std::ptrdiff_t>(random() % all.size());
                    query.after = *after++;
                }
                const std::size_t left = static_cast<std::size_t>(all.end() - after);
                const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(query.k, left));
                matchcount::SearchPath path;
                expect_equal(search_texts(index, query, workspace, pool, &path), {after, after + size});
                if (HasFatalFailure()) return;
                candidates += path.candidates ? 1 : 0;
                proved += path.proved ? 1 : 0;
            }
        }
    }
    EXPECT_GE(cases, 100000U);
    EXPECT_GT(cases - candidates, 10000U);
    EXPECT_GT(proved, 1000U);
    EXPECT_GT(candidates - proved, 10000U);
}

}  // namespace
}  // namespace pgwarp::test
