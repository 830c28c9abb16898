// Rows that pass predicates: counts, lists and bitmaps against tests of every row; predicates of many queries.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "engine/filter/column_order.h"
#include "engine/filter/filter_index.h"
#include "engine/filter/query_predicates.h"
#include "predicate_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

constexpr std::size_t rows = 20011;  // several pieces of a sort, and no whole word
constexpr std::uint32_t columns = 3;
constexpr std::uint64_t values = 2000;

class Filters : public testing::Test
{
protected:
    std::set<std::uint32_t> passing(std::span<const std::uint64_t> predicate) const
    {
        std::set<std::uint32_t> found;
        for (std::uint32_t row = 0; row < rows; ++row)
            if (passes(predicate, attributes.data() + row * columns)) found.insert(row);
        return found;
    }

    ThreadPool pool{3};
    const std::vector<std::uint64_t> attributes = random_attributes(rows, columns, values, 1);
    FilterIndex index{attributes, columns, rows};
};

TEST_F(Filters, ListsAndBitmapsHoldTheRowsThatPass)
{
    std::mt19937_64 random(2);
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::uint32_t row = 0; row < rows; row += 7) set_bit(dead, row);
    for (int i = 0; i < 300; ++i) {
        const Predicate predicate = random_predicate(random, columns, values);
        const std::set<std::uint32_t> truth = passing(predicate);
        const auto list = index.passing(predicate, pool);
        EXPECT_EQ(list->rows.size(), truth.size());
        EXPECT_EQ(std::set<std::uint32_t>(list->rows.begin(), list->rows.end()), truth);
        const bool with_dead = i % 2 == 0;
        const auto failing =
            index.failing(predicate, with_dead ? RowBitmap(dead) : RowBitmap(), with_dead ? 1 : 0, pool);
        std::uint64_t live = 0;
        for (std::uint32_t row = 0; row < rows; ++row) {
            const bool is_out = !truth.contains(row) || (with_dead && row % 7 == 0);
            ASSERT_EQ(bit_is_set(failing->bits, row), is_out) << row;
            live += is_out ? 0 : 1;
        }
        EXPECT_EQ(failing->live, live);
        EXPECT_EQ(failing->bits.size(), (rows + 63) / 64);
        EXPECT_EQ(failing->bits.back() >> (rows % 64), 0U);
    }
}

TEST_F(Filters, CountsAreExactOrNear)
{
    std::mt19937_64 random(3);
    for (int i = 0; i < 300; ++i) {
        const Predicate predicate = random_predicate(random, columns, values);
        const std::set<std::uint32_t> truth = passing(predicate);
        const PassCount count = index.count(predicate, pool);
        if (count.exact) {
            EXPECT_EQ(count.rows, truth.size());
        } else {
            EXPECT_NEAR(static_cast<double>(count.rows), static_cast<double>(truth.size()),
                        0.1 * static_cast<double>(count.listed) + 10);
            EXPECT_GT(count.rows, 0U);
        }
        EXPECT_GE(count.listed, truth.size());
        EXPECT_LE(count.some.size(), 64U);
        if (count.exact && !truth.empty() && predicate.words()[0] > 0) {
            EXPECT_FALSE(count.some.empty());
        }
        for (const std::uint32_t row : count.some) EXPECT_TRUE(truth.contains(row));
    }
    const Predicate one = Predicate().where(0, 100, 299);
    EXPECT_TRUE(index.count(one, pool).exact);
    EXPECT_EQ(index.count(Predicate(), pool).rows, rows);
}

TEST_F(Filters, OrdersAreMadeWhenAPredicateAsks)
{
    const Predicate predicate = Predicate().where(1, 3, 5);
    EXPECT_FALSE(index.is_ready(predicate));
    EXPECT_TRUE(index.is_ready(Predicate()));
    EXPECT_EQ(index.memory_bytes(), 0U);
    index.count(predicate, pool);
    EXPECT_TRUE(index.is_ready(predicate));
    EXPECT_FALSE(index.is_ready(Predicate().where(0, 1, 2).where(1, 3, 5)));
    EXPECT_GE(index.memory_bytes(), rows * sizeof(std::uint32_t));
    EXPECT_LE(index.memory_bytes(), rows * 5);
}

TEST_F(Filters, WhatComesAgainIsKeptWithinBounds)
{
    const Predicate predicate = Predicate().where(0, 100, 999).where(2, 0, 9);
    const auto bitmap = index.failing(predicate, {}, 0, pool);
    EXPECT_EQ(index.failing(predicate, {}, 0, pool), bitmap);
    const std::vector<std::uint64_t> dead((rows + 63) / 64, 1);
    EXPECT_NE(index.failing(predicate, dead, 5, pool), bitmap);
    EXPECT_EQ(index.passing(predicate, pool), index.passing(predicate, pool));
    for (std::uint64_t i = 0; i < 3000; ++i) index.failing(Predicate().where(0, i, i + 100), {}, 0, pool);
    EXPECT_LE(index.memory_bytes(), columns * rows * std::uint64_t{5} + (std::uint64_t{5} << 20));
    EXPECT_NE(index.failing(predicate, {}, 0, pool), bitmap);
    for (std::uint64_t i = 2900; i < 3000; ++i) {
        const Predicate latest = Predicate().where(0, i, i + 100);
        const auto known = index.failing(latest, {}, 0, pool);
        EXPECT_EQ(known->live, passing(latest).size());
        EXPECT_EQ(index.failing(latest, {}, 0, pool), known);
    }
}

TEST_F(Filters, DeadRowsWithoutAVersionMayBeOthersEachTime)
{
    const Predicate predicate = Predicate().where(0, 100, 999);
    const std::uint64_t live = index.failing(predicate, {}, 0, pool)->live;
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t row = 0; row < rows; ++row) set_bit(dead, row);
    EXPECT_EQ(index.failing(predicate, dead, 0, pool)->live, 0U);
    std::fill(dead.begin(), dead.end(), 0);
    EXPECT_EQ(index.failing(predicate, dead, 0, pool)->live, live);
}

TEST_F(Filters, ThreadsShareOrders)
{
    ThreadPool callers(4);
    const Predicate predicate = Predicate().where(0, 10, 500).where(1, 0, 50).where(2, 0, null_code);
    const std::size_t truth = passing(predicate).size();
    std::atomic<int> right{0};
    callers.parallel_for(16, 1, [&](std::size_t, std::size_t) {
        right += index.passing(predicate, pool)->rows.size() == truth ? 1 : 0;
        right += index.failing(predicate, {}, 0, pool)->live == truth ? 1 : 0;
    });
    EXPECT_EQ(right, 32);
}

// Codes near each other, few far ones, and many far ones: the order finds each kind in a way of its own.
TEST(ColumnOrder, RowsOfRanges)
{
    constexpr std::uint64_t most = ~std::uint64_t{0};
    ThreadPool pool(2);
    std::mt19937_64 random(4);
    const auto expect_right = [&](const std::vector<std::uint64_t>& codes, const std::string& kind) {
        SCOPED_TRACE(kind);
        const ColumnOrder order(codes, 1, 0, pool);
        std::vector<std::uint64_t> ends = {0, 1, most - 1, most};
        for (int i = 0; i < 40; ++i) {
            const std::uint64_t code = codes.empty() ? random() : codes[random() % codes.size()];
            ends.insert(ends.end(), {code, code + 1, code - 1});
        }
        for (int i = 0; i < 2000; ++i) {
            const std::uint64_t a = ends[random() % ends.size()];
            const std::uint64_t b = ends[random() % ends.size()];
            const CodeRange range{std::min(a, b), std::max(a, b)};
            std::vector<std::pair<std::uint64_t, std::uint32_t>> right;
            for (std::uint32_t row = 0; row < codes.size(); ++row)
                if (range.first <= codes[row] && codes[row] <= range.last) right.emplace_back(codes[row], row);
            std::sort(right.begin(), right.end());
            const auto found = order.rows_of(range);
            ASSERT_EQ(found.size(), right.size()) << range.first << " to " << range.last;
            for (std::size_t at = 0; at < right.size(); ++at) ASSERT_EQ(found[at], right[at].second);
        }
    };
    const auto made = [&](std::size_t count, const auto& code) {
        std::vector<std::uint64_t> codes;
        for (std::size_t i = 0; i < count; ++i) codes.push_back(code());
        return codes;
    };
    for (const std::uint64_t least : {std::uint64_t{0}, std::uint64_t{1} << 63, most - 999}) {
        expect_right(made(3000, [&] { return least + random() % 1000; }), "near");
        expect_right(made(3000, [&] { return least + random() % 10 * 111; }), "near, with gaps");
        expect_right(made(3000, [&] { return least / 2 + random() % 3 * (most / 7); }), "few, and far");
        expect_right(made(3000, [&] { return least ^ (random() >> 1); }), "many, and far");
        expect_right(made(1, [&] { return least; }), "one");
    }
    expect_right({0, most, 0, most, 7}, "both ends");
    expect_right({}, "none");
}

TEST(QueryPredicates, AreJoinedQueryByQuery)
{
    const Predicate a = Predicate().where(0, 1, 2);
    const Predicate b = Predicate().where(0, 3, 4).where(2, {});
    std::vector<std::uint64_t> words = a.words();
    words.insert(words.end(), b.words().begin(), b.words().end());
    const std::vector<std::uint32_t> names{1, 0, 1};
    const PredicateBlock block{{2, static_cast<std::uint32_t>(words.size())}, words, names};
    ASSERT_EQ(predicates_fault(block, 3), nullptr);
    const QueryPredicates of_three(block, 3);
    QueryPredicates all;
    all.append(QueryPredicates(), 0, 2);
    EXPECT_TRUE(all.empty());
    all.append(of_three, 1, 2);
    all.append(std::span<const std::uint64_t>());
    all.append(a);
    EXPECT_FALSE(all.empty());
    ASSERT_EQ(all.queries(), 6U);
    const auto same = [](std::span<const std::uint64_t> found, const Predicate& wanted) {
        return std::ranges::equal(found, wanted.words());
    };
    EXPECT_TRUE(all.of(0).empty());
    EXPECT_TRUE(all.of(1).empty());
    EXPECT_TRUE(same(all.of(2), a));
    EXPECT_TRUE(same(all.of(3), b));
    EXPECT_TRUE(all.of(4).empty());
    EXPECT_TRUE(same(all.of(5), a));
    const QueryPredicates of_all({{1, static_cast<std::uint32_t>(b.words().size())}, b, {}}, 2);
    EXPECT_TRUE(same(of_all.of(0), b));
    EXPECT_TRUE(same(of_all.of(1), b));
}

TEST(QueryPredicates, WithFaultsAreRefused)
{
    const Predicate right = Predicate().where(0, 1, 2).where(2, 5, 6);
    const auto fault = [](std::vector<std::uint64_t> words, std::uint32_t known, std::vector<std::uint32_t> names = {},
                          std::uint32_t count = 1) {
        return predicates_fault({{count, static_cast<std::uint32_t>(words.size())}, words, names}, known) != nullptr;
    };
    EXPECT_FALSE(fault(right.words(), 3));
    EXPECT_TRUE(fault(right.words(), 2));                                      // unknown column
    EXPECT_TRUE(fault({}, 3));                                                 // no predicate
    EXPECT_TRUE(fault(Predicate().where(0, 2, 1).words(), 3));                 // range the wrong way round
    EXPECT_TRUE(fault(Predicate().where(1, 1, 2).where(1, 1, 2).words(), 3));  // column twice
    EXPECT_TRUE(fault(Predicate().where(1, 1, 2).where(0, 1, 2).words(), 3));  // columns descend
    EXPECT_TRUE(fault(Predicate().where(0, {{1, 5}, {5, 6}}).words(), 3));     // ranges meet
    EXPECT_TRUE(fault({1, std::uint64_t{9} << 32, 1, 2}, 3));                  // ends within its ranges
    EXPECT_TRUE(fault({2, std::uint64_t{1} << 32, 1, 2}, 3));                  // ends within its terms
    EXPECT_TRUE(fault({1, ~std::uint64_t{0} << 32, 1, 2}, 3));
    EXPECT_TRUE(fault({0, 0}, 3));  // words behind the last
    EXPECT_FALSE(fault({0, 0}, 3, {0, 1, 1}, 2));
    EXPECT_TRUE(fault({0, 0}, 3, {0, 1, 2}, 2));  // unknown name
}

}  // namespace
}  // namespace pgwarp
