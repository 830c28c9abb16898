// The buffer of a build's rows: collection from several threads, and sorting in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "methods/method.h"

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

// Rows whose first number is their tid's, brought into order by several threads.
void expect_sorted(const std::vector<std::uint32_t>& numbers, std::size_t dimensions)
{
    RowBuffer buffer(dimensions);
    std::vector<float> row(dimensions);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const Tid tid{numbers[i] / 7, static_cast<std::uint16_t>(numbers[i] % 7 + 1), 0};
        row[0] = static_cast<float>(numbers[i]);
        row[dimensions - 1] = row[0];
        buffer.append({&tid, 1}, row);
    }
    ThreadPool pool(4);
    buffer.sort_by_tid(&pool);
    std::vector<std::uint32_t> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        ASSERT_EQ(buffer.tids()[i].block, sorted[i] / 7);
        ASSERT_EQ(buffer.tids()[i].offset, sorted[i] % 7 + 1);
        ASSERT_EQ(buffer.vectors()[i * dimensions], static_cast<float>(sorted[i]));
        ASSERT_EQ(buffer.vectors()[(i + 1) * dimensions - 1], static_cast<float>(sorted[i]));
    }
}

TEST(RowBuffer, SortsAnyOrderInPlace)
{
    std::mt19937 random(3);
    for (const std::size_t count : {0U, 1U, 2U, 3U, 1023U, 1024U, 1025U, 20000U}) {
        std::vector<std::uint32_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), 0U);
        expect_sorted(numbers, 2);
        std::reverse(numbers.begin(), numbers.end());
        expect_sorted(numbers, 2);
        // Cycles of two next to each other, most of them without a cut.
        std::sort(numbers.begin(), numbers.end());
        for (std::size_t i = 1; i + 1 < count; i += 2) std::swap(numbers[i], numbers[i + 1]);
        expect_sorted(numbers, 1);
        std::shuffle(numbers.begin(), numbers.end(), random);
        expect_sorted(numbers, 3);
        for (std::uint32_t& number : numbers) number /= 3;  // equal ones
        expect_sorted(numbers, 3);
    }
}

}  // namespace
}  // namespace pgwarp
