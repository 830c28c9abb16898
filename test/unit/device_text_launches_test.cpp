// The launches of a search of texts: each query is in exactly one, or in all parts of one, and none takes too long.
#include <gtest/gtest.h>

#include "matchcount/text_launches.h"
#include "matchcount/tile_share.h"
#include "text_fixture.h"

namespace pgwarp::cuda
{
namespace
{

TEST(TextLaunches, EveryQueryIsLaunchedOnce)
{
    std::mt19937 random(1);
    constexpr double most = 2;
    for (int run = 0; run < 1000; ++run) {
        std::vector<double> seconds(random() % 20);
        for (double& each : seconds) each = (random() % 100) * (random() % 5 == 0 ? 0.2 : 0.01);
        std::vector<std::uint32_t> parts(seconds.size());
        for (const TextLaunch& launch : plan_text_launches(seconds, most)) {
            ASSERT_GT(launch.count, 0U);
            ASSERT_LT(launch.part, launch.parts);
            double sum = 0;
            for (std::uint32_t i = launch.first; i < launch.first + launch.count; ++i) {
                ASSERT_EQ(parts.at(i), launch.part) << "parts in their order";
                ++parts[i];
                sum += seconds[i] / launch.parts;
            }
            EXPECT_LE(sum, most * 1.0001);
            EXPECT_TRUE(launch.parts == 1 || launch.count == 1);
            EXPECT_TRUE(launch.part + 1 < launch.parts || parts[launch.first] == launch.parts);
        }
        for (const std::uint32_t each : parts) EXPECT_GE(each, 1U);
    }
}

TEST(TextLaunches, WarpsShareTheTiles)
{
    std::mt19937 random(2);
    for (int run = 0; run < 3000; ++run) {
        const std::uint32_t warps = 2 + random() % 40;
        const std::uint32_t of_longer = random() % 4 == 0 ? 0 : random() % 200;
        const std::uint32_t of_shorter = random() % 4 == 0 ? 0 : random() % 200;
        std::vector<int> longer(of_longer);
        std::vector<int> shorter(of_shorter);
        for (std::uint32_t warp = 0; warp < warps; ++warp) {
            const TileShare share = share_tiles(of_longer, of_shorter, warp, warps);
            std::vector<int>& side = share.longer ? longer : shorter;
            for (std::size_t tile = share.first; tile < side.size(); tile += share.step) ++side[tile];
        }
        for (const auto* side : {&longer, &shorter})
            for (const int times : *side) ASSERT_EQ(times, 1) << of_longer << ", " << of_shorter << ", " << warps;
    }
}

TEST(TextLaunches, TimesGrowWithTheTextsInReach)
{
    std::vector<test::Text> texts;
    for (std::size_t length = 0; length < 100; ++length) texts.emplace_back(length, U'a');
    const pgwarp::matchcount::TextsByLength by_length(test::text_rows(texts).view(), caller_alone());
    const TextTimes times(by_length, 100, 132);
    EXPECT_GT(times.near(40), 0);
    EXPECT_GT(times.rest(40, 10), times.near(40));
    for (const std::uint32_t limit : {0, 1, 20, 30, 50}) EXPECT_GT(times.rest(40, limit + 5), times.rest(40, limit));
    EXPECT_EQ(times.rest(40, 0xffffffff), times.rest(40, 200)) << "all texts";
    EXPECT_EQ(times.rest(500, 10), 0) << "no text is as long";
    EXPECT_DOUBLE_EQ(TextTimes(by_length, 100, 66).rest(40, 10), 2 * times.rest(40, 10));
    EXPECT_EQ(TextTimes().rest(40, 10), 0);
}

}  // namespace
}  // namespace pgwarp::cuda
