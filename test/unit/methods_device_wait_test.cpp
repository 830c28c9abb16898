// The table of threads that wait for a device: deadlines, patience, and many threads at once.
#include "methods/device_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pgwarp
{
namespace
{

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto nobody = DeviceClock::duration::max();

TEST(DeviceWait, IsSeenWhileItLasts)
{
    EXPECT_EQ(patience_left(), nobody);
    {
        const DeviceWait wait;
        EXPECT_LE(patience_left(), device_patience);
        EXPECT_GT(patience_left(), seconds(0));
    }
    EXPECT_EQ(patience_left(), nobody);
}

TEST(DeviceWait, IsOverdueAfterItsDeadline)
{
    const auto began = DeviceClock::now();
    const DeviceWait wait;
    EXPECT_LT(patience_left(DeviceClock::now() + device_patience + milliseconds(1)), seconds(0));
    EXPECT_GE(patience_left(began + device_patience), seconds(0));
}

TEST(DeviceWait, MayTakeAsLongAsItsThreadHasPatience)
{
    const auto began = DeviceClock::now();
    const DevicePatience long_work(seconds(600));
    {
        const DevicePatience no_less(seconds(1));
        const DeviceWait wait;
        EXPECT_GE(patience_left(began), seconds(600));
    }
    std::thread([began] {
        const DeviceWait other;
        EXPECT_LT(patience_left(began), seconds(60));
    }).join();
    const DeviceWait wait;
    EXPECT_GE(patience_left(began), seconds(600));
}

TEST(DeviceWait, PatienceEndsWithItsScope)
{
    const auto began = DeviceClock::now();
    {
        const DevicePatience long_work(seconds(600));
    }
    const DeviceWait wait;
    EXPECT_LT(patience_left(began), seconds(60));
}

TEST(DeviceWait, TheOneClosestToItsDeadlineIsTold)
{
    const auto began = DeviceClock::now();
    const DeviceWait first;
    const DevicePatience long_work(seconds(600));
    const DeviceWait second;
    EXPECT_LT(patience_left(began), seconds(60));
}

TEST(DeviceWait, MoreThanTheTableHoldsDoNoHarm)
{
    std::vector<std::unique_ptr<DeviceWait>> waits;
    for (int i = 0; i < 1100; ++i) waits.push_back(std::make_unique<DeviceWait>());
    EXPECT_LE(patience_left(), device_patience);
    waits.clear();
    EXPECT_EQ(patience_left(), nobody);
}

TEST(DeviceWait, ManyThreadsComeAndGo)
{
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 20000; ++i) const DeviceWait wait;
        });
    }
    std::thread watching([&] {
        while (!done.load()) ASSERT_GT(patience_left(), seconds(0));
    });
    for (std::thread& thread : threads) thread.join();
    done.store(true);
    watching.join();
    EXPECT_EQ(patience_left(), nobody);
}

}  // namespace
}  // namespace pgwarp
