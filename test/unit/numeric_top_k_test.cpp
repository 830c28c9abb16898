// Selection of the k smallest scores: pushes, blocks, merges and thresholds against sorting.
#include "numeric/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "numeric_reference.h"

namespace pgwarp
{
namespace
{

using Pairs = std::vector<std::pair<float, std::uint32_t>>;

Pairs pairs(const std::vector<Candidate>& candidates)
{
    Pairs result;
    for (const Candidate& candidate : candidates) result.emplace_back(candidate.score, candidate.row);
    return result;
}

// The k smallest pairs of scores and rows, by sorting all; scores that are not below infinity never enter.
Pairs sorted_reference(const std::vector<float>& scores, std::size_t k)
{
    Pairs all;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] < std::numeric_limits<float>::infinity())
            all.emplace_back(scores[i], static_cast<std::uint32_t>(i));
    }
    std::sort(all.begin(), all.end());
    all.resize(std::min(k, all.size()));
    return all;
}

// Streams that differ in how often the threshold falls and how many scores are equal.
std::vector<std::vector<float>> streams(std::size_t count)
{
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<std::vector<float>> all(5, std::vector<float>(count));
    all[0] = reference::normal_values(count, 1);
    all[1] = reference::small_integers(count, 2);
    for (std::size_t i = 0; i < count; ++i) all[2][i] = -static_cast<float>(i);
    for (std::size_t i = 0; i < count; ++i) all[3][i] = static_cast<float>(i);
    all[4] = reference::normal_values(count, 3);
    for (std::size_t i = 0; i < count; i += 3)
        all[4][i] = i % 2 == 0 ? std::nanf("") : i % 5 == 0 ? -infinity : infinity;
    return all;
}

const std::vector<std::size_t> sizes = {0, 1, 2, 10, 63, 64, 100, 1000, 5000};

TEST(TopK, PushesGiveTheSortedPrefix)
{
    for (const std::size_t count : {0, 1, 100, 3000}) {
        for (const std::vector<float>& scores : streams(count)) {
            for (const std::size_t k : sizes) {
                TopK top(k);
                for (std::size_t i = 0; i < count; ++i) top.push(scores[i], static_cast<std::uint32_t>(i));
                EXPECT_EQ(pairs(top.take_sorted()), sorted_reference(scores, k)) << k << " of " << count;
            }
        }
    }
}

TEST(TopK, BlocksGiveTheSortedPrefixOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t count : {0, 1, 15, 64, 65, 257, 3001}) {
            for (const std::vector<float>& scores : streams(count)) {
                for (const std::size_t k : sizes) {
                    for (const std::size_t block : {1UL, 17UL, 1000UL, 4000UL}) {
                        TopK top(k);
                        for (std::size_t i = 0; i < count; i += block) {
                            const std::size_t part = std::min(block, count - i);
                            const reference::Unaligned<float> exact{std::span(scores).subspan(i, part)};
                            top.push_block(exact.data(), part, static_cast<std::uint32_t>(i));
                        }
                        ASSERT_EQ(pairs(top.take_sorted()), sorted_reference(scores, k))
                            << target << " " << k << " of " << count << " by " << block;
                    }
                }
            }
        }
    });
}

TEST(TopK, MergeDoesNotDependOnTheOrder)
{
    const std::size_t count = 2000;
    const std::size_t part = 500;
    for (const std::vector<float>& scores : streams(count)) {
        for (const std::size_t k : sizes) {
            for (const bool backwards : {false, true}) {
                TopK merged(k);
                for (std::size_t p = 0; p < count / part; ++p) {
                    const std::size_t begin = (backwards ? count / part - 1 - p : p) * part;
                    TopK top(k);
                    top.push_block(scores.data() + begin, part, static_cast<std::uint32_t>(begin));
                    merged.merge(top);
                }
                EXPECT_EQ(pairs(merged.take_sorted()), sorted_reference(scores, k)) << k << " " << backwards;
            }
        }
    }
}

TEST(TopK, ThresholdIsInfiniteUntilKWereSeenAndNeverTooLow)
{
    const std::vector<float> scores = reference::normal_values(5000, 4);
    for (const std::size_t k : {1, 10, 100}) {
        TopK top(k);
        std::vector<float> seen;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            if (i < k) {
                ASSERT_EQ(top.threshold(), std::numeric_limits<float>::infinity());
            }
            top.push(scores[i], static_cast<std::uint32_t>(i));
            seen.insert(std::upper_bound(seen.begin(), seen.end(), scores[i]), scores[i]);
            if (i + 1 >= k) {
                ASSERT_GE(top.threshold(), seen[k - 1]);
            }
        }
        // After this number of scores the threshold must be close to the true one.
        EXPECT_LE(top.threshold(), seen[2 * k + 64]);
    }
}

TEST(TopK, NothingEntersWhereKIsZero)
{
    TopK top(0);
    EXPECT_EQ(top.threshold(), -std::numeric_limits<float>::infinity());
    const float lowest = -std::numeric_limits<float>::infinity();
    top.push(lowest, 1);
    top.push_block(&lowest, 1, 2);
    EXPECT_TRUE(top.take_sorted().empty());
}

}  // namespace
}  // namespace pgwarp
