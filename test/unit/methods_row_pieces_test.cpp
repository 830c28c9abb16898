// Rows in pieces of any size: each comes once, whole and in order.
#include "methods/rows/row_pieces.h"

#include <gtest/gtest.h>

#include <numeric>

namespace pgwarp::test
{
namespace
{

TEST(RowPieces, GiveEachRowOnceAndWhole)
{
    constexpr std::size_t row_bytes = 12;
    constexpr std::size_t rows = 1500;
    std::vector<std::uint32_t> words(rows * row_bytes / sizeof(std::uint32_t));
    std::iota(words.begin(), words.end(), 7U);
    const auto all = std::as_bytes(std::span(words));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, row_bytes, std::size_t{31}, all.size()}) {
        RowPieces pieces;
        std::vector<std::byte> given;
        std::size_t most = 0;
        for (std::size_t offset = 0; offset < all.size(); offset += piece) {
            ASSERT_EQ(pieces.bytes(), offset);
            pieces.give(all.subspan(offset, std::min(piece, all.size() - offset)), row_bytes,
                        [&](std::size_t first, std::size_t count, const std::byte* bytes) {
                            ASSERT_EQ(first * row_bytes, given.size());
                            given.insert(given.end(), bytes, bytes + count * row_bytes);
                            most = std::max(most, count);
                        });
        }
        EXPECT_TRUE(std::equal(given.begin(), given.end(), all.begin(), all.end())) << piece;
        EXPECT_LE(most, 512U);
    }
}

}  // namespace
}  // namespace pgwarp::test
