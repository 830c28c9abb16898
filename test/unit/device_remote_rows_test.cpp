// Rows in host memory as a device reads them: pieces of the stored array in any cut come to where the rows lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "methods/method.h"
#include "rows/remote_rows.h"

namespace pgwarp::test
{

namespace
{

using cuda::rows::RemoteRows;

TEST(RemoteRows, lieOnWholePiecesOfSixteenBytes)
{
    EXPECT_EQ(RemoteRows(1, 4, sizeof(float)).stride(), 4U);
    EXPECT_EQ(RemoteRows(1, 5, sizeof(float)).stride(), 8U);
    EXPECT_EQ(RemoteRows(1, 8, 2).stride(), 8U);
    EXPECT_EQ(RemoteRows(1, 9, 2).stride(), 16U);
    EXPECT_TRUE(RemoteRows().empty());
}

TEST(RemoteRows, areWrittenInPiecesOfAnyLength)
{
    constexpr std::size_t count = 7;
    for (const std::size_t dimensions : {1U, 3U, 4U, 13U}) {
        std::vector<float> given(count * dimensions);
        for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i + 1);
        for (const std::size_t length : {1U, 5U, 24U, 1000U}) {
            RemoteRows rows(count, dimensions, sizeof(float));
            const auto all = std::as_bytes(std::span(given));
            for (std::size_t offset = 0; offset < all.size(); offset += length)
                rows.write(offset, all.subspan(offset, std::min(length, all.size() - offset)));
            for (std::size_t row = 0; row < count; ++row) {
                EXPECT_TRUE(std::equal(given.data() + row * dimensions, given.data() + (row + 1) * dimensions,
                                       rows.row<float>(row)))
                    << dimensions << " " << length << " " << row;
            }
        }
    }
}

TEST(RemoteRows, takeNothingPastTheirEnd)
{
    RemoteRows rows(2, 3, sizeof(float));
    const std::vector<std::byte> bytes(24);
    EXPECT_NO_THROW(rows.write(0, bytes));
    EXPECT_THROW(rows.write(1, bytes), BadRequest);
    EXPECT_THROW(rows.write(25, {}), BadRequest);
}

}  // namespace

}  // namespace pgwarp::test
