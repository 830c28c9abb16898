// The parts of the traversal that searches on a device run: tables of visited rows, quotients, entries of the queue.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/traversal.h"
#include "host_group.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda::graph;

template <class Visited>
class VisitedRows : public testing::Test
{
};
using Structures = testing::Types<VisitedHash<HostGroup>, VisitedBloom<HostGroup>, VisitedCuckoo<HostGroup>>;
TYPED_TEST_SUITE(VisitedRows, Structures);

TYPED_TEST(VisitedRows, RememberAndErase)
{
    constexpr std::uint32_t bits = 8;
    std::vector<std::uint32_t> words(visited_words(bits), 12345);
    TypeParam visited(HostGroup(0, 1, nullptr), words.data(), bits);
    visited.clear();
    for (std::uint32_t row = 0; row < 1000; ++row) EXPECT_FALSE(visited.contains(row));
    const std::uint32_t count = visited.capacity() / 2;
    std::uint32_t mistaken = 0;
    bool lost = false;
    for (std::uint32_t i = 0; i < count; ++i) mistaken += visited.insert(i * 7919, lost) ? 0 : 1;
    EXPECT_LE(mistaken, TypeParam::may_mistake ? count / 20 : 0);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_TRUE(visited.contains(i * 7919));
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_FALSE(visited.insert(i * 7919, lost));
    if (!TypeParam::may_erase) return;
    for (std::uint32_t i = 0; i < count; i += 2) visited.erase(i * 7919);
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (i % 2 == 1) {
            EXPECT_TRUE(visited.contains(i * 7919) || TypeParam::may_mistake);
        } else {
            left += visited.contains(i * 7919) ? 1 : 0;
        }
    }
    EXPECT_LE(left, TypeParam::may_mistake ? count / 20 : 0);
    visited.insert_new(0);
    EXPECT_TRUE(visited.contains(0));
}

TYPED_TEST(VisitedRows, AreFullWithoutEnd)
{
    constexpr std::uint32_t bits = 5;
    std::vector<std::uint32_t> words(visited_words(bits));
    TypeParam visited(HostGroup(0, 1, nullptr), words.data(), bits);
    visited.clear();
    std::uint32_t forgotten = 0;
    for (std::uint32_t row = 0; row < 5000; ++row) {
        bool lost = false;
        visited.insert(row, lost);
        forgotten += lost ? 1 : 0;
    }
    // A table of this few words reports nearly all rows as lost.
    EXPECT_TRUE(TypeParam::may_mistake || forgotten >= 5000 - visited_words(bits));
    for (std::uint32_t row = 0; row < 5000; ++row) visited.erase(row);
}

TEST(Quotients, AreThoseOfDivisions)
{
    for (std::uint32_t divisor = 2; divisor < 300; ++divisor) {
        for (std::uint32_t a = 0; a < 1U << 16; ++a) ASSERT_EQ(quotient(a, inverse_of(divisor)), a / divisor);
    }
}

TEST(Entries, AreFoundAmongSortedOnes)
{
    for (std::uint32_t count = 0; count < 150; ++count) {
        // Every other place is taken, some by expanded rows.
        std::vector<Entry> sorted;
        for (std::uint32_t i = 0; i < count; ++i) sorted.push_back(make_entry(1, 2 * i + 1) | i % 3 / 2);
        for (std::uint32_t begin : {0U, count / 3}) {
            for (std::uint32_t row = 0; row <= 2 * count; ++row) {
                const std::uint32_t place = lower_bound_of(sorted.data(), begin, count, make_entry(1, row));
                ASSERT_EQ(place, std::max(begin, row / 2)) << row << " among " << count;
            }
        }
    }
}

TEST(Entries, AreInTheOrderOfScoresAndRows)
{
    const std::vector<float> scores{-3e38F, -2, -1e-30F, 0, 1e-30F, 1, 7, 3e38F};
    for (std::size_t i = 1; i < scores.size(); ++i) {
        EXPECT_LT(make_entry(scores[i - 1], most_rows - 1), make_entry(scores[i], 0));
    }
    EXPECT_EQ(make_entry(-0.0F, 4), make_entry(0.0F, 4));
    EXPECT_LT(make_entry(1, 4), make_entry(1, 5));
    EXPECT_EQ(make_entry(INFINITY, 1), no_entry);
    EXPECT_EQ(make_entry(-INFINITY, 1), no_entry);
    EXPECT_EQ(make_entry(NAN, 1), no_entry);
    EXPECT_EQ(row_of(make_entry(5, most_rows - 1) | 1), most_rows - 1);
    EXPECT_EQ(place_of(make_entry(5, 77) | 1), place_of(make_entry(5, 77)));
}

}  // namespace
}  // namespace pgwarp::test
