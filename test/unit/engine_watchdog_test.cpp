// The watchdog: when a wait is overdue, and that it ends the process.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/server/watchdog.h"
#include "protocol/exit_codes.h"

namespace pgwarp
{
namespace
{

using namespace std::chrono_literals;

TEST(Watchdog, TellsOnceThatAWaitIsOverdue)
{
    std::atomic<std::int64_t> left{1};
    std::atomic<int> looks{0};
    std::atomic<int> told{0};
    const Watchdog watchdog(
        [&] {
            ++looks;
            return std::chrono::nanoseconds(left);
        },
        [&] { ++told; }, 1ms);
    const auto look_on = [&] {
        const int before = looks;
        while (looks < before + 5) std::this_thread::sleep_for(1ms);
    };
    look_on();
    EXPECT_EQ(told, 0);
    left = -1;
    look_on();
    EXPECT_EQ(told, 1);
    look_on();
    EXPECT_EQ(told, 1);
}

// A stopped process finds its waits overdue when it continues; these waits end soon, so it must not end itself.
TEST(Watchdog, OneLookIsNotEnough)
{
    std::atomic<int> looks{0};
    std::atomic<int> told{0};
    const Watchdog watchdog([&] { return std::chrono::nanoseconds(++looks % 2 == 0 ? -1 : 1); }, [&] { ++told; }, 1ms);
    while (looks < 20) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(told, 0);
}

TEST(WatchdogDeathTest, AHungEngineEnds)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(end_hung_engine(), testing::ExitedWithCode(exit_device_hangs), "the device does not answer");
}

}  // namespace
}  // namespace pgwarp
