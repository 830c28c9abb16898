// Bitmaps of heap addresses: their words, the rows of an index that have such addresses, and the bitmaps that a session
// has sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "engine/filter/named_rows.h"
#include "engine/filter/tid_order.h"
#include "engine/server/sent_bitmaps.h"
#include "methods/errors.h"
#include "tid_bitmap_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

constexpr std::uint32_t most_blocks = 5000;

// Rows with addresses on some of the pages, ascending; a dead row may have the address of another.
std::vector<Tid> random_tids(std::size_t count, std::uint32_t blocks, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Tid> tids(count);
    for (Tid& tid : tids)
        tid = {static_cast<std::uint32_t>(random() % blocks), static_cast<std::uint16_t>(1 + random() % 290), 0};
    std::sort(tids.begin(), tids.end());
    return tids;
}

struct Addresses {
    explicit Addresses(const std::vector<Tid>& tids)
    {
        for (const Tid& tid : tids) {
            blocks.push_back(tid.block);
            offsets.push_back(tid.offset);
        }
    }
    std::vector<std::uint32_t> blocks;
    std::vector<std::uint16_t> offsets;
};

// The rows of the bitmap by a test of each.
std::vector<std::uint32_t> tested_rows(const std::vector<Tid>& tids, const TidBitmap& bitmap)
{
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < tids.size(); ++row)
        if (bitmap.contains(tids[row])) rows.push_back(row);
    return rows;
}

void expect_rows(const std::vector<Tid>& tids, const TidBitmap& bitmap, ThreadPool& pool)
{
    const Addresses addresses(tids);
    TidOrder order(addresses.blocks, addresses.offsets);
    EXPECT_FALSE(order.is_ready());
    std::vector<std::uint32_t> rows = order.rows_of(bitmap, pool);
    EXPECT_TRUE(order.is_ready());
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(rows, tested_rows(tids, bitmap));
    EXPECT_EQ(order.rows_of(bitmap, pool).size(), rows.size());
}

TEST(TidBitmap, ContainsItsAddressesAlone)
{
    const std::set<Tid> tids = {{0, 1, 0}, {0, 64, 0}, {0, 65, 0}, {7, 291, 0}, {0xfffffffe, 2048, 0}};
    const TidBitmap bitmap = bitmap_of(tids, {9});
    EXPECT_EQ(bitmap.pages(), 4U);
    EXPECT_EQ(bitmap.tids(), tids.size());
    EXPECT_EQ(bitmap.whole_pages(), 1U);
    for (const std::uint32_t block : {0U, 1U, 6U, 7U, 8U, 9U, 10U, 0xfffffffeU, 0xffffffffU}) {
        for (std::uint32_t offset = 0; offset <= 0xffff; ++offset) {
            const Tid tid = {block, static_cast<std::uint16_t>(offset), 0};
            ASSERT_EQ(bitmap.contains(tid), block == 9 || tids.contains(tid)) << block << " " << offset;
        }
    }
    EXPECT_FALSE(TidBitmap({}).contains({0, 1, 0}));
}

TEST(TidBitmap, WithFaultsIsRefused)
{
    const auto fault = [](std::vector<std::uint64_t> words) { return tid_bitmap_fault(words) != nullptr; };
    constexpr std::uint64_t one_word = std::uint64_t{1} << 32;
    EXPECT_FALSE(fault({}));
    EXPECT_FALSE(fault({3, 4 | one_word, 1, 5}));
    EXPECT_TRUE(fault({4, 4}));
    EXPECT_TRUE(fault({4, 3}));
    EXPECT_TRUE(fault({4 | one_word}));
    EXPECT_TRUE(fault({4 | 2 * one_word, 1}));
    EXPECT_TRUE(fault({~std::uint64_t{0}}));
    std::vector<std::uint64_t> long_page(1 + most_page_words + 1, 1);
    long_page[0] = 4 | std::uint64_t{most_page_words + 1} << 32;
    EXPECT_TRUE(fault(long_page));
}

TEST(TidOrder, FindsTheRowsOfABitmap)
{
    ThreadPool pool(2);
    std::mt19937_64 random(3);
    for (const std::size_t count : {0, 1, 100, 20000}) {
        for (const std::uint32_t blocks : {1U, 300U, most_blocks, 0xffffffffU}) {
            const std::vector<Tid> tids = random_tids(count, blocks, 5);
            std::set<Tid> some;
            std::set<std::uint32_t> whole;
            for (const Tid& tid : tids) {
                if (random() % 3 == 0) some.insert(tid);
                if (random() % 100 == 0) whole.insert(tid.block);
            }
            for (std::size_t i = 0; i < 50; ++i) some.insert(random_tids(1, blocks, 100 + i)[0]);  // of no row
            expect_rows(tids, bitmap_of(some, {}), pool);
            expect_rows(tids, bitmap_of(some, whole), pool);
            expect_rows(tids, bitmap_of({}, whole), pool);
            // Merges append rows.
            std::vector<Tid> merged = tids;
            std::shuffle(merged.begin(), merged.end(), random);
            expect_rows(merged, bitmap_of(some, whole), pool);
        }
    }
}

TEST(NamedRows, AreAListAndABitmapOfTheOthers)
{
    std::vector<std::uint32_t> named;
    for (std::uint32_t row = 0; row < 1000; row += 3) named.push_back(row);
    NamedRows rows(named, 1000);
    EXPECT_EQ(rows.count().rows, named.size());
    EXPECT_TRUE(rows.count().exact);
    EXPECT_LE(rows.count().some.size(), 64U);
    EXPECT_EQ(std::vector(rows.passing()->rows.begin(), rows.passing()->rows.end()), named);
    std::vector<std::uint64_t> dead(16);
    set_bit(dead, 0);
    set_bit(dead, 1);
    const auto failing = rows.failing(dead);
    EXPECT_EQ(failing->live, named.size() - 1);
    for (std::uint32_t row = 0; row < 1024; ++row)
        EXPECT_EQ(bit_is_set(failing->bits, row), row < 1000 && (row % 3 != 0 || row == 0)) << row;
    EXPECT_EQ(rows.failing(dead), failing);
}

LoadTidsRequest piece_of(std::uint64_t number, std::uint64_t first, std::uint32_t count, bool final)
{
    return {number, first, count, final ? 1U : 0U};
}

TEST(SentBitmaps, ComeInPieces)
{
    SentBitmaps sent;
    const std::vector<std::uint64_t> words = {1, 2, 3 | std::uint64_t{2} << 32, 4, 5};
    EXPECT_EQ(sent.find(8), nullptr);
    sent.add(piece_of(8, 0, 3, false), std::span(words).first(3));
    EXPECT_EQ(sent.find(8), nullptr);
    sent.add(piece_of(8, 3, 2, true), std::span(words).subspan(3));
    ASSERT_NE(sent.find(8), nullptr);
    EXPECT_EQ(sent.find(8)->pages(), 3U);
    sent.add(piece_of(9, 0, 0, true), {});
    EXPECT_EQ(sent.find(9)->pages(), 0U);
    EXPECT_THROW(sent.add(piece_of(10, 1, 1, true), std::span(words).first(1)), BadRequest);
    sent.add(piece_of(10, 0, 1, false), std::span(words).first(1));
    EXPECT_THROW(sent.add(piece_of(11, 1, 1, true), std::span(words).first(1)), BadRequest);
    EXPECT_THROW(sent.add(piece_of(12, 0, 3, true), std::span(words).first(3)), BadRequest);
    EXPECT_EQ(sent.find(12), nullptr);
    EXPECT_NE(sent.find(8), nullptr);
}

TEST(SentBitmaps, AreKeptWhileTheyAreUsed)
{
    SentBitmaps sent;
    const std::vector<std::uint64_t> words = {1, 2};
    for (std::uint64_t number = 1; number <= 40; ++number) {
        sent.add(piece_of(number, 0, 2, true), words);
        EXPECT_NE(sent.find(1), nullptr);
    }
    EXPECT_EQ(sent.find(2), nullptr);
    EXPECT_NE(sent.find(40), nullptr);
}

}  // namespace
}  // namespace pgwarp
