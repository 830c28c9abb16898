// Keys of candidates against the order of candidates, and selections of them against sorting.
#include "numeric/ordered_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "numeric/key_ranks.h"
#include "numeric_reference.h"

namespace pgwarp
{
namespace
{

using Keys = std::vector<std::uint64_t>;

TEST(OrderedKeys, HaveTheOrderOfCandidates)
{
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float smallest = std::numeric_limits<float>::denorm_min();
    std::vector<Candidate> candidates;
    for (const float score : {-infinity, -3e38F, -1.0F, -smallest, 0.0F, smallest, 1.0F, 3e38F, infinity})
        for (const std::uint32_t row : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU})
            candidates.push_back({score, row});
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const std::uint64_t key = ordered_key(candidates[i].score, candidates[i].row);
        EXPECT_EQ(candidate_of(key).score, candidates[i].score);
        EXPECT_EQ(candidate_of(key).row, candidates[i].row);
        const Candidate before = candidates[i > 0 ? i - 1 : 0];
        EXPECT_EQ(ordered_key(before.score, before.row) < key, i > 0) << i;
    }
    EXPECT_EQ(ordered_key(-0.0F, 7), ordered_key(0.0F, 7));
}

void expect_smallest(const Keys& keys, std::size_t count)
{
    Keys sorted = keys;
    std::ranges::sort(sorted);
    Keys selected = keys;
    select_smallest(selected, count);
    EXPECT_EQ(selected[count - 1], sorted[count - 1]);
    std::ranges::sort(selected.begin(), selected.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_TRUE(std::equal(selected.begin(), selected.begin() + static_cast<std::ptrdiff_t>(count), sorted.begin()));
    std::ranges::sort(selected);
    EXPECT_EQ(selected, sorted);
}

TEST(SelectSmallest, SelectsWhatSortingDoes)
{
    std::mt19937_64 generator(1);
    for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 33U, 160U, 1000U, 5000U}) {
        for (const std::uint64_t values : {1U, 2U, 10U, 1000000U}) {
            Keys keys(size);
            for (std::uint64_t& key : keys) key = generator() % values;
            for (const std::size_t count : {std::size_t{1}, size / 2 + 1, size - size / 3, size})
                expect_smallest(keys, count);
        }
    }
}

TEST(SelectSmallest, OrderedKeys)
{
    constexpr std::size_t size = 3000;
    Keys keys(size);
    std::iota(keys.begin(), keys.end(), 0U);
    for (const std::size_t count : {1U, 10U, 1500U, 2999U, 3000U}) {
        expect_smallest(keys, count);
        expect_smallest(Keys(keys.rbegin(), keys.rend()), count);
    }
    for (std::size_t i = 0; i < size; ++i) keys[i] = std::min(i, size - i);
    for (const std::size_t count : {1U, 10U, 1500U, 2999U, 3000U}) expect_smallest(keys, count);
}

TEST(KeyRanks, AreThoseOfASort)
{
    std::mt19937_64 random(9);
    reference::for_each_target([&](const char* target) {
        SCOPED_TRACE(target);
        for (const std::size_t count : {0, 1, 7, 8, 9, 64, 257}) {
            Keys keys(count);
            // Different ones, some of them beyond the range of signed words.
            for (std::size_t i = 0; i < count; ++i) keys[i] = random() / 512 * 512 + i;
            std::vector<std::uint32_t> ranks(count);
            rank_keys(keys.data(), count, ranks.data());
            Keys sorted = keys;
            std::ranges::sort(sorted);
            for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sorted[ranks[i]], keys[i]);
        }
    });
}

}  // namespace
}  // namespace pgwarp
