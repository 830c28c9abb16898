// Waits for a hanging device are overdue after their deadline: waits for a stream, an event or answers, and copies to
// the host.
#include "methods/device_wait.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "device/error.h"
#include "device/hang.h"
#include "device/wait.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

// The least patience_left() seen while `work` runs.
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

// Reads into memory that is not page-locked, where the copy itself waits for the work before it.
void read_behind_work(cuda::Context& context, std::size_t count)
{
    constexpr int byte = 7;
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    cuda::DeviceArray<std::uint8_t> values(context.pool(), count, "test", stream);
    cuda::keep_busy(stream, 5);
    cuda::check(cudaMemsetAsync(values.data(), byte, values.bytes(), stream), "test");
    std::vector<std::uint8_t> read(count);
    cuda::read_back(read.data(), values.data(), values.bytes(), stream, "reading behind work");
    EXPECT_EQ(read, std::vector<std::uint8_t>(count, byte));
}

TEST(DeviceThatHangs, IsOverdueWhileItIsReadFrom)
{
    cuda::Context& context = shared_context();
    for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 20}) {
        EXPECT_LT(least_patience([&] { read_behind_work(context, count); }), std::chrono::seconds(0)) << count;
        EXPECT_EQ(patience_left(), DeviceClock::duration::max());
    }
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
