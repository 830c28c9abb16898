#include <gtest/gtest.h>

#include <thread>

#include "index/index.h"

namespace pgwarp
{
namespace
{

TEST(RowBuffer, CollectsFromThreadsAndSortsByTid)
{
    RowBuffer buffer(3);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&buffer, t] {
            for (std::uint32_t i = 0; i < 500; ++i) {
                const std::uint32_t number = (499 - i) * 4 + t;
                const Tid tid{number / 5, static_cast<std::uint16_t>(number % 5 + 1), 0};
                const float row[3] = {static_cast<float>(number), 1, 2};
                buffer.append({&tid, 1}, row);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    buffer.sort_by_tid();
    ASSERT_EQ(buffer.size(), 2000U);
    for (std::uint32_t i = 0; i < 2000; ++i) {
        ASSERT_EQ(buffer.tids()[i].block, i / 5);
        ASSERT_EQ(buffer.vectors()[i * 3], static_cast<float>(i));
    }
    const auto halves = buffer.compact_to_half([](const float* row, std::uint16_t* out) {
        for (int d = 0; d < 3; ++d) out[d] = static_cast<std::uint16_t>(row[d]);
    });
    for (std::uint32_t i = 0; i < 2000; ++i) ASSERT_EQ(halves[i * 3], i);
    EXPECT_TRUE(buffer.vectors().empty());
}

}  // namespace
}  // namespace pgwarp
