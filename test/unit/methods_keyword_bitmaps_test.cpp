// Bitmaps of keywords against their posting lists.
#include "methods/matchcount/keyword_bitmaps.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "methods/matchcount/match_count.h"

namespace pgwarp::matchcount
{
namespace
{

// Rows, each of which has keyword i with a probability of its own.
struct Rows {
    Rows(std::uint32_t count, std::uint32_t keywords, std::mt19937_64& random)
    {
        std::vector<std::uint64_t> often;  // of 1024
        for (std::uint32_t keyword = 0; keyword < keywords; ++keyword)
            often.push_back(random() % 3 == 0 ? random() % 1025 : random() % 40);
        for (std::uint32_t row = 0; row < count; ++row) {
            for (std::uint32_t keyword = 0; keyword < keywords; ++keyword)
                if (random() % 1024 < often[keyword]) words.push_back(keyword);
            offsets.push_back(words.size());
        }
    }
    KeywordRows view() const { return {offsets, words}; }

    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> words;
};

TEST(KeywordBitmaps, SumsAreCounts)
{
    std::mt19937_64 random(1);
    constexpr std::uint32_t rows = 3000;
    std::vector<std::vector<std::uint64_t>> bitmaps(255, std::vector<std::uint64_t>(3072 / 64));
    for (std::vector<std::uint64_t>& bitmap : bitmaps)
        for (std::uint32_t row = 0; row < rows; ++row)
            if (row < 100 || random() % 4 != 0) set_bit(bitmap, row);
    for (const std::size_t summed : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 100U, 255U}) {
        BitmapSum sum;
        for (std::size_t i = 0; i < summed; ++i) sum.add(bitmaps[i]);
        EXPECT_EQ(sum.empty(), summed == 0);
        for (const auto& [first, size] : {std::pair(0U, 512U), {512U, 1024U}, {2560U, 2048U}, {4096U, 512U}}) {
            std::vector<std::uint8_t> counts(size, 99);
            sum.write(first, counts);
            for (std::uint32_t i = 0; i < size; ++i) {
                std::uint32_t expected = 0;
                for (std::size_t j = 0; j < summed && first + i < 3072; ++j)
                    expected += bit_is_set(bitmaps[j], first + i) ? 1 : 0;
                ASSERT_EQ(counts[i], expected) << summed << " at " << first + i;
            }
        }
    }
}

TEST(KeywordBitmaps, TakeNoMoreMemoryThanTheirLists)
{
    std::mt19937_64 random(2);
    for (const std::uint32_t count : {0U, 10U, 600U, 3000U}) {
        const Rows rows(count, 60, random);
        const KeywordLists lists(rows.view(), caller_alone());
        const KeywordBitmaps bitmaps(lists, caller_alone());
        EXPECT_LE(bitmaps.memory_bytes(), lists.postings() * sizeof(std::uint32_t));
        EXPECT_EQ(bitmaps.numbers().empty(), count < 16);
        for (std::size_t place = 0; place < bitmaps.numbers().size(); ++place) {
            const std::size_t number = bitmaps.numbers()[place];
            const auto list = lists.lists(KeywordLists::Numbers{number, number + 1});
            std::vector<std::uint32_t> in_bitmap;
            for (std::uint32_t row = 0; row < bitmaps.bitmap(place).size() * 64; ++row)
                if (bit_is_set(bitmaps.bitmap(place), row)) in_bitmap.push_back(row);
            EXPECT_TRUE(std::ranges::equal(in_bitmap, list));
        }
    }
}

TEST(KeywordBitmaps, AreNotMadeOfRepeatedKeywords)
{
    std::mt19937_64 random(3);
    Rows rows(0, 0, random);
    for (std::uint32_t row = 0; row < 600; ++row) {
        rows.words.insert(rows.words.end(), {1, 2, 2});
        rows.offsets.push_back(rows.words.size());
    }
    const KeywordLists lists(rows.view(), caller_alone());
    EXPECT_TRUE(KeywordBitmaps(lists, caller_alone()).numbers().empty());
}

TEST(KeywordBitmaps, SearchesCountTheSame)
{
    std::mt19937_64 random(4);
    ThreadPool pool(2);
    CountWorkspace workspaces[] = {CountWorkspace(0), CountWorkspace(4096), CountWorkspace()};
    for (int i = 0; i < 60; ++i) {
        constexpr std::uint32_t keywords = 60;
        const Rows rows(static_cast<std::uint32_t>(random() % 9000), keywords, random);
        const KeywordLists lists(rows.view(), pool);
        const KeywordBitmaps bitmaps(lists, pool);
        CountOptions options;
        options.bitmaps = &bitmaps;
        for (int query = 0; query < 20; ++query) {
            std::vector<Item> items(random() % (query % 4 == 0 ? 300 : 20));
            for (Item& item : items) {
                item.first = static_cast<std::uint32_t>(random() % keywords);
                item.last = item.first + static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 10 : 0);
            }
            const auto k = static_cast<std::uint32_t>(random() % 60);
            CountWorkspace& workspace = workspaces[random() % 3];
            const MatchCounts expected = search_counts(lists, items, k, {}, workspace);
            const MatchCounts found = search_counts(lists, items, k, {}, workspace, options);
            ASSERT_EQ(found.audit_threshold, expected.audit_threshold);
            ASSERT_EQ(found.rows.size(), expected.rows.size());
            for (std::size_t at = 0; at < found.rows.size(); ++at) {
                ASSERT_EQ(found.rows[at].row, expected.rows[at].row) << at;
                ASSERT_EQ(found.rows[at].count, expected.rows[at].count) << at;
            }
        }
    }
}

}  // namespace
}  // namespace pgwarp::matchcount
