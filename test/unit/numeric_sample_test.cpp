// Samples of rows: their size and order, and that no part of the rows is preferred.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "numeric/sample.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t few = 100000;
constexpr std::size_t many = 100000007;

TEST(Sample, Ascends)
{
    for (const std::size_t count : {few, many}) {
        const std::vector<std::uint32_t> rows = sample_rows(count, 5000, 7);
        ASSERT_EQ(rows.size(), 5000U);
        EXPECT_TRUE(std::ranges::is_sorted(rows));
        EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
        EXPECT_LT(rows.back(), count);
    }
}

TEST(Sample, TakesAllWhereThereAreNoMore)
{
    const std::vector<std::uint32_t> rows = sample_rows(1000, 1000, 7);
    for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(rows[i], i);
    EXPECT_EQ(sample_rows(1000, 2000, 7).size(), 1000U);
    EXPECT_TRUE(sample_rows(many, 0, 7).empty());
}

TEST(Sample, IsSpreadOverAllRows)
{
    constexpr std::size_t wanted = 16000;
    constexpr std::size_t parts = 16;
    for (const std::size_t count : {std::size_t{400000}, many}) {
        std::vector<std::size_t> in_part(parts, 0);
        std::size_t odd = 0;
        for (const std::uint32_t row : sample_rows(count, wanted, 11)) {
            ++in_part[row * parts / count];
            odd += row % 2;
        }
        // Five standard deviations of independent draws.
        for (const std::size_t found : in_part) EXPECT_NEAR(static_cast<double>(found), 1000, 5 * 31);
        EXPECT_NEAR(static_cast<double>(odd), 8000, 5 * 64);
    }
}

TEST(Sample, DependsOnTheSeedAlone)
{
    for (const std::size_t count : {few, many}) {
        EXPECT_EQ(sample_rows(count, 1000, 3), sample_rows(count, 1000, 3));
        std::vector<std::uint32_t> common;
        std::ranges::set_intersection(sample_rows(count, 1000, 3), sample_rows(count, 1000, 4),
                                      std::back_inserter(common));
        EXPECT_LT(common.size(), 50U);
    }
}

}  // namespace
}  // namespace pgwarp::test
