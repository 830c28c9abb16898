// Lists of rows as they are sent to the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "rows/list_layout.h"

namespace pgwarp::cuda::rows
{
namespace
{

// The rows that a query's pieces give, from what is sent.
std::vector<std::uint32_t> rows_of_pieces(const ListLayout& layout, std::span<const std::uint32_t> sent,
                                          std::uint32_t query, std::uint32_t piece_rows)
{
    std::vector<std::uint32_t> rows;
    for (std::uint32_t i = layout.first_pieces()[query]; i < layout.first_pieces()[query + 1]; ++i) {
        const ListPiece& piece = layout.pieces()[i];
        EXPECT_EQ(piece.query, query);
        EXPECT_GT(piece.count, 0U);
        EXPECT_LE(piece.count, piece_rows);
        const auto some = sent.subspan(piece.first, piece.count);
        rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
}

void expect_lists(const std::vector<RowList>& lists, std::uint32_t piece_rows, std::size_t sent_rows)
{
    ThreadPool pool(2);
    const ListLayout layout(lists, piece_rows);
    ASSERT_EQ(layout.sent_rows(), sent_rows);
    ASSERT_EQ(layout.first_pieces().size(), lists.size() + 1);
    ASSERT_EQ(layout.first_pieces().back(), layout.pieces().size());
    std::vector<std::uint32_t> sent(sent_rows);
    layout.copy_rows(sent.data(), pool);
    for (std::uint32_t query = 0; query < lists.size(); ++query) {
        const auto rows = rows_of_pieces(layout, sent, query, piece_rows);
        EXPECT_TRUE(std::ranges::equal(rows, lists[query])) << "query " << query;
    }
}

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first)
{
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), first);
    return rows;
}

TEST(ListLayout, SendsSharedMemoryOnce)
{
    const std::vector<std::uint32_t> order = numbers(1000, 5000);
    const RowList all(order);
    // Overlapping, equal, within another, adjacent, apart.
    expect_lists({all.subspan(100, 200), all.subspan(50, 100), all.subspan(100, 200), all.subspan(150, 10),
                  all.subspan(300, 40), all.subspan(900, 100)},
                 64, 390);
}

TEST(ListLayout, KeepsOtherMemoryApart)
{
    const std::vector<std::uint32_t> some = numbers(70, 100);
    const std::vector<std::uint32_t> others = numbers(130, 50);
    expect_lists({others, some, others}, 64, 200);
}

// More rows than a thread copies at a time, in long stretches and in short ones.
TEST(ListLayout, CopiesStretchesInPieces)
{
    std::vector<std::vector<std::uint32_t>> memory;
    for (std::uint32_t i = 0; i < 3000; ++i) memory.push_back(numbers(i % 1000 == 0 ? 150001 : i % 90, 7 * i));
    std::size_t rows = 0;
    std::vector<RowList> lists;
    for (const auto& own : memory) {
        lists.emplace_back(own);
        rows += own.size();
    }
    expect_lists(lists, 1024, rows);
}

TEST(ListLayout, TakesEmptyLists)
{
    const std::vector<std::uint32_t> some = numbers(3, 7);
    expect_lists({{}, some, {}}, 64, 3);
    expect_lists({{}, {}}, 64, 0);
    expect_lists({}, 64, 0);
}

TEST(ListLayout, HoldsForRandomStretches)
{
    std::mt19937_64 random(1);
    const std::vector<std::uint32_t> order = numbers(5000, 0);
    for (int round = 0; round < 50; ++round) {
        std::vector<RowList> lists;
        std::vector<bool> covered(order.size());
        for (std::size_t i = 0; i < 20; ++i) {
            const std::size_t first = random() % order.size();
            const std::size_t count = random() % std::min<std::size_t>(order.size() - first, 400);
            lists.push_back(RowList(order).subspan(first, count));
            std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(first), count, true);
        }
        expect_lists(lists, 128, static_cast<std::size_t>(std::ranges::count(covered, true)));
    }
}

}  // namespace
}  // namespace pgwarp::cuda::rows
