// Scores over bytes of inverted lists: their errors, the same values on every instruction set, and the selection below
// a threshold.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <random>

#include "methods/rows/byte_lists.h"

namespace pgwarp
{
namespace
{

std::vector<float> random_values(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator) * 20;
    return values;
}

// Every instruction set of this machine, the best first.
std::vector<std::int64_t> targets()
{
    std::vector<std::int64_t> result{hwy::SupportedTargets()};
    for (std::int64_t rest = result[0]; rest != 0; rest &= rest - 1) {
        const std::int64_t without = rest & (rest - 1);
        if (without != 0) result.push_back(without);
    }
    return result;
}

class ByteScores : public testing::TestWithParam<std::size_t>
{
protected:
    void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(ByteScores, ApproximateDistancesAndAgreeOnEveryInstructionSet)
{
    const std::size_t dimensions = GetParam();
    constexpr std::size_t size = 83;
    const std::vector<float> rows = random_values(size * dimensions, 1);
    const std::vector<float> centroid = random_values(dimensions, 2);
    const std::vector<float> query = random_values(dimensions, 3);
    for (const bool squared : {true, false}) {
        std::vector<float> first;
        for (const std::int64_t target : targets()) {
            hwy::SetSupportedTargetsForTest(target);
            ByteLists lists;
            lists.layout({5, size, 0}, dimensions, squared);
            for (std::size_t i = 0; i < size; ++i)
                lists.set(lists.begin(1) + i, rows.data() + i * dimensions, centroid.data());
            ByteQuery bytes;
            bytes.assign(query.data(), centroid.data(), dimensions);
            std::vector<float> scores(lists.padded(1));
            lists.score(1, bytes, squared ? bytes.squared_norm : 0, scores.data());
            for (std::size_t i = 0; i < scores.size(); ++i) {
                if (i >= size) {
                    ASSERT_TRUE(std::isinf(scores[i]));
                    continue;
                }
                double expected = 0;
                for (std::size_t d = 0; d < dimensions; ++d) {
                    const double y = static_cast<double>(query[d]) - centroid[d];
                    const double r = static_cast<double>(rows[i * dimensions + d]) - centroid[d];
                    expected += squared ? (y - r) * (y - r) : -y * r;
                }
                // Each byte is off by half a step of at most 1/127 of some 100.
                ASSERT_NEAR(scores[i], expected, 100 * 100 * 0.012 * std::sqrt(static_cast<double>(dimensions))) << i;
            }
            if (first.empty()) first = scores;
            for (std::size_t i = 0; i < size; ++i)
                ASSERT_NEAR(scores[i], first[i], 1e-5 * (1 + std::fabs(first[i]))) << hwy::TargetName(target & -target);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Widths, ByteScores, testing::Values(1, 3, 4, 31, 128, 130, 1000));

TEST(SelectBelow, FindsAllInOrder)
{
    const std::vector<float> scores = random_values(1000, 4);
    for (const std::int64_t target : targets()) {
        hwy::SetSupportedTargetsForTest(target);
        std::vector<std::uint32_t> found(1016);
        found.resize(select_below(scores.data(), 997, 3.0F, found.data()));
        std::vector<std::uint32_t> expected;
        for (std::uint32_t i = 0; i < 997; ++i) {
            if (scores[i] < 3.0F) expected.push_back(i);
        }
        EXPECT_EQ(found, expected);
    }
    hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace pgwarp
