// The index method matchcount under other distances of text: with transpositions, to the nearest substring, and the
// Jaccard distance of grams. Answers are compared with a plain scan.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "methods/matchcount/gram_search.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/text_bounds.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "numeric/text_pattern.h"
#include "protocol/search_bound.h"
#include "text_fixture.h"

namespace pgwarp::test::text_kinds_test
{
namespace
{

using matchcount::GramForm;
using matchcount::QueryBounds;

constexpr Metric metrics[] = {Metric::edit, Metric::edit_transpositions, Metric::edit_substring, Metric::gram_jaccard};

std::map<Text, std::uint32_t> counted_grams(const Text& text)
{
    const Text padded = Text(2, U'\uffff') + text + Text(2, U'\uffff');
    std::map<Text, std::uint32_t> counts;
    for (std::size_t at = 0; at + 3 <= padded.size(); ++at) ++counts[padded.substr(at, 3)];
    return counts;
}

double plain_gram_distance(const Text& a, const Text& b)
{
    const auto of_b = counted_grams(b);
    std::uint32_t common = 0;
    for (const auto& [gram, count] : counted_grams(a)) {
        const auto found = of_b.find(gram);
        if (found != of_b.end()) common += std::min(count, found->second);
    }
    return 1.0 - common / static_cast<double>(a.size() + b.size() + 4 - common);
}

double plain_distance(Metric metric, const Text& query, const Text& text)
{
    if (metric == Metric::gram_jaccard) return plain_gram_distance(query, text);
    return plain_edit_distance(*edit_kind(metric), Characters(query.begin(), query.end()),
                               Characters(text.begin(), text.end()));
}

std::vector<RowResult> all_in_order(Metric metric, const std::vector<Text>& texts, const Text& query,
                                    RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < texts.size(); ++i)
        if (!bit_is_set(dead, i)) all.push_back({plain_distance(metric, query, texts[i]), i});
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

// Swaps neighbours, beside other edits.
Text disturbed(std::mt19937& random, Text text, std::size_t edits, std::uint32_t letters)
{
    for (; edits > 0; --edits) {
        const std::size_t at = text.empty() ? 0 : random() % text.size();
        if (random() % 2 == 0 && at + 1 < text.size()) {
            std::swap(text[at], text[at + 1]);
        } else {
            text = edited(random, text, 1, letters);
        }
    }
    return text;
}

std::vector<Text> related_texts(std::mt19937& random, std::size_t count, std::size_t longest, std::uint32_t letters)
{
    std::vector<Text> texts;
    while (texts.size() < count) {
        if (texts.empty() || random() % 3 == 0) {
            texts.push_back(random_text(random, random() % (longest + 1), letters));
        } else {
            texts.push_back(disturbed(random, texts[random() % texts.size()], random() % 5, letters));
        }
    }
    return texts;
}

// A part of a text, with edits.
Text part_of(std::mt19937& random, const Text& text, std::uint32_t letters)
{
    const std::size_t begin = random() % (text.size() + 1);
    const std::size_t length = random() % (text.size() - begin + 1);
    return disturbed(random, text.substr(begin, length), random() % 3, letters);
}

TEST(TextKinds, BoundsAreBelowTheDistance)
{
    std::mt19937 random(31);
    for (const EditKind kind : {EditKind::transpositions, EditKind::substring}) {
        std::uint64_t attained = 0;
        std::uint64_t by_characters = 0;
        for (int i = 0; i < 6000; ++i) {
            const GramForm form{2 + static_cast<std::uint32_t>(random() % 5), random() % 4 == 0 ? 6U : 32U};
            const Text text = random_text(random, random() % 60, 12);
            const Text query =
                kind == EditKind::substring ? part_of(random, text, 12) : disturbed(random, text, random() % 8, 12);
            const std::vector<std::uint32_t> words = packed(query);
            const std::vector<std::uint32_t> text_words = packed(text);
            const QueryBounds bounds(view_text(words), kind, form);
            std::vector<std::uint32_t> keywords;
            std::vector<std::uint32_t> others;
            bounds.append_keywords(view_text(words), keywords);
            append_grams(view_text(text_words), form, others);
            std::map<std::uint32_t, std::int64_t> lists;
            for (const std::uint32_t keyword : others) ++lists[keyword];
            std::int64_t shared = 0;
            for (const std::uint32_t keyword : keywords) shared += lists.contains(keyword) ? lists[keyword] : 0;
            const auto length = static_cast<std::uint32_t>(text.size());
            const auto distance = static_cast<std::uint32_t>(plain_edit_distance(
                kind, Characters(query.begin(), query.end()), Characters(text.begin(), text.end())));
            const std::int64_t least = bounds.least_shared(length, distance);
            ASSERT_GE(shared, least);
            attained += shared == least && least > 0 ? 1 : 0;
            ASSERT_LE(bounds.gap(length), distance);
            const std::uint32_t characters =
                bounds.least_distance(matchcount::CharacterCounts::of(view_text(text_words)), length);
            ASSERT_LE(characters, distance);
            by_characters += characters == distance && distance > 0 ? 1 : 0;
        }
        EXPECT_GT(attained, 20U);
        EXPECT_GT(by_characters, 100U);
    }
}

TEST(TextKinds, GramDistanceIsThatOfMultisets)
{
    std::mt19937 random(32);
    for (int i = 0; i < 3000; ++i) {
        const Text a = random_text(random, random() % 30, 1 + random() % 4, i % 2 == 0 ? U'a' : U'\U0001f600');
        const Text b = disturbed(random, a, random() % 6, 3);
        const std::vector<std::uint32_t> words = packed(a);
        std::vector<std::uint64_t> memory(GramPattern::memory_words(view_text(words)));
        const GramPattern pattern(view_text(words), memory.data());
        for (const Text& other : {b, a, Text()}) {
            const std::vector<std::uint32_t> other_words = packed(other);
            ASSERT_EQ(pattern.distance(view_text(other_words)), plain_gram_distance(a, other));
        }
    }
    EXPECT_EQ(plain_gram_distance(U"", U""), 0);
    EXPECT_EQ(plain_gram_distance(U"", U"abc"), 1);
}

// Small indexes with few candidates, so that every part of the search decides some answers.
TEST(TextKinds, AnswersAreThoseOfAScan)
{
    ThreadPool pool(2);
    std::mt19937 random(33);
    matchcount::CountWorkspace workspace;
    for (int index_number = 0; index_number < 500; ++index_number) {
        const std::uint32_t letters = 1 + random() % 6;
        const std::size_t longest = random() % 4 == 0 ? 90 : 14;
        const std::vector<Text> texts = related_texts(random, random() % 60, longest, letters);
        const Metric metric = metrics[1 + random() % 3];
        const std::uint32_t gram = metric == Metric::gram_jaccard ? 3 : 2 + static_cast<std::uint32_t>(random() % 5);
        const GramForm form{gram, random() % 4 == 0 ? 4U : 32U};
        const matchcount::TextIndex index = make_text_index({text_rows(texts).view(), pool}, form, pool);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() & random();
        const std::vector<std::uint64_t> dead_places = index.texts.bitmap_of_places(dead);
        for (int query_number = 0; query_number < 30; ++query_number) {
            const bool near = !texts.empty() && random() % 3 > 0;
            Text text = random_text(random, random() % 20, letters);
            if (near) text = part_of(random, texts[random() % texts.size()], letters);
            const std::vector<std::uint32_t> words = packed(text);
            std::vector<RowResult> all = all_in_order(metric, texts, text, dead);
            const std::uint32_t k = 1 + random() % (random() % 4 == 0 ? 70 : 4);
            const std::uint32_t candidates = 1 + random() % 12;
            const std::uint32_t within = random() % 3 == 0 ? random() % 12 : no_edit_limit;
            RowResult after = {-1, 0};
            if (random() % 5 == 0 && !all.empty()) after = all[random() % all.size()];
            std::vector<RowResult> found;
            if (metric == Metric::gram_jaccard) {
                matchcount::GramQuery query{view_text(words), k, dead_places, after};
                if (within < no_edit_limit) query.within = within / 9.0;
                std::erase_if(all, [&](const RowResult& row) { return row.distance > query.within; });
                query.least_candidates = candidates;
                found = search_grams(index, query, workspace, pool);
            } else {
                matchcount::TextQuery query;
                query.text = view_text(words);
                query.kind = *edit_kind(metric);
                query.k = k;
                query.dead = dead_places;
                query.after = after;
                query.within = within;
                query.least_candidates = candidates;
                std::erase_if(all, [&](const RowResult& row) { return row.distance > within; });
                found = search_texts(index, query, workspace, pool);
            }
            std::erase_if(all, [&](const RowResult& row) { return !comes_before(after, row); });
            all.resize(std::min<std::size_t>(k, all.size()));
            expect_equal(found, all);
            if (HasFatalFailure()) return;
        }
    }
}

// Built, stored, loaded and searched by the metric of the index's shape.
TEST(TextKinds, IndexesAnswerByTheirMetric)
{
    std::mt19937 random(34);
    std::vector<Text> texts = related_texts(random, 2500, 50, 12);
    texts[5] = U"";
    texts[6] = random_text(random, 700, 12);
    std::vector<Text> asked = {U"", U"x", U"ab", U"\U0001f600", Text(300, U'z'), texts[6].substr(40, 290)};
    while (asked.size() < 30) asked.push_back(part_of(random, texts[random() % texts.size()], 12));
    ThreadPool pool(2);
    for (const Metric metric : metrics) {
        const IndexShape shape = Index::shape_of(Method::matchcount, metric, 0, ElementType::text);
        const Index index(shape, text_rows(texts).view(), {}, pool);
        const OwnedRows rows = text_rows(asked);
        SearchBatch batch;
        batch.lists = rows.view();
        batch.count = asked.size();
        batch.k = 20;
        std::vector<std::vector<RowResult>> found;
        index.searcher->search(batch, found, pool);
        const double within = metric == Metric::gram_jaccard ? 0.6 : 4;
        SearchBatch bounded = batch;
        set_within(&bounded.settings, within);
        bounded.k = 3000;
        std::vector<std::vector<RowResult>> near;
        index.searcher->search(bounded, near, pool);
        for (std::size_t q = 0; q < asked.size(); ++q) {
            std::vector<RowResult> all = all_in_order(metric, texts, asked[q]);
            expect_equal(found[q], {all.begin(), all.begin() + 20});
            std::erase_if(all, [&](const RowResult& row) { return row.distance > within; });
            expect_equal(near[q], all);
            if (HasFatalFailure()) return;
        }
        std::vector<double> distances(texts.size());
        index.searcher->compare_rows(rows.view().row(7), text_rows(texts).view(), distances);
        for (std::size_t i = 0; i < texts.size(); ++i)
            ASSERT_EQ(distances[i], plain_distance(metric, asked[7], texts[i]));
    }
}

TEST(TextKinds, GramsOfOtherSizesAreRefused)
{
    const IndexShape shape = Index::shape_of(Method::matchcount, Metric::gram_jaccard, 0, ElementType::text);
    EXPECT_TRUE(matchcount_description.check_options(make_list({{"gram", 4}}), shape));
    EXPECT_FALSE(matchcount_description.check_options(make_list({{"gram", 3}}), shape));
}

}  // namespace
}  // namespace pgwarp::test::text_kinds_test
