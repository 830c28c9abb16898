// Waits for a device that hangs are overdue after their deadline, whether they wait for a stream, an event or answers.
#include "index/device_wait.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "device/hang.h"
#include "device/wait.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

// The least of patience_left() until `work` is done.
template <class Work>
DeviceClock::duration least_patience(const Work& work)
{
    std::atomic<bool> done{false};
    std::thread working([&] {
        work();
        done.store(true);
    });
    auto least = DeviceClock::duration::max();
    while (!done.load()) {
        least = std::min(least, patience_left());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    working.join();
    return least;
}

TEST(DeviceThatHangs, IsOverdueAfterItsDeadline)
{
    cuda::Context& context = shared_context();
    EXPECT_EQ(patience_left(), DeviceClock::duration::max());
    EXPECT_LT(least_patience([&] { cuda::hang(context, 5); }), std::chrono::seconds(0));
    EXPECT_EQ(patience_left(), DeviceClock::duration::max());
}

TEST(DeviceThatHangs, IsWaitedForLongerByBuilds)
{
    cuda::Context& context = shared_context();
    const auto least = least_patience([&] {
        const cuda::Context::Build build(context);
        cuda::hang(context, 4);
    });
    EXPECT_GT(least, std::chrono::minutes(10));
    EXPECT_NE(least, DeviceClock::duration::max());
}

TEST(DeviceThatWorks, KeepsItsDeadlines)
{
    cuda::Context& context = shared_context();
    EXPECT_GT(least_patience([&] { cuda::hang(context, 1); }), std::chrono::seconds(0));
}

}  // namespace
}  // namespace pgwarp::test
