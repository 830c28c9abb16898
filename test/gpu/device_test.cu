// Recorded launches: replays do what launches do, keys tell them apart, and nothing is kept beyond the capacity.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "device/captured_launches.h"
#include "device/context.h"
#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

__global__ void add_kernel(std::uint32_t* value, std::uint32_t amount)
{
    *value += amount;
}

class CapturedLaunchesTest : public ::testing::Test
{
protected:
    CapturedLaunchesTest()
        : context_(0, 0), lease_(context_.lease(Priority::search)), value_(context_.pool(), 2, "test", lease_), host_(1)
    {
        CapturedLaunches::enable(true);
        check(cudaMemsetAsync(value_.data(), 0, value_.bytes(), lease_), "test");
    }

    ~CapturedLaunchesTest() override { CapturedLaunches::enable(before_); }

    void add(CapturedLaunches& launches, std::uint64_t key, std::uint32_t amount)
    {
        const std::array<std::uint64_t, 2> words{key, 7};
        launches.run(words, lease_, [&](cudaStream_t stream) {
            add_kernel<<<1, 1, 0, stream>>>(value_.data(), amount);
            check_launch("test");
            add_kernel<<<1, 1, 0, stream>>>(value_.data(), amount);
            check_launch("test");
        });
    }
    std::uint32_t value()
    {
        check(cudaMemcpyAsync(host_.data(), value_.data(), sizeof(std::uint32_t), cudaMemcpyDeviceToHost, lease_),
              "test");
        lease_.stream().synchronize();
        return host_.data()[0];
    }

    const bool before_ = CapturedLaunches::enabled();
    Context context_;
    Context::Lease lease_;
    DeviceArray<std::uint32_t> value_;
    PinnedArray<std::uint32_t> host_;
};

TEST_F(CapturedLaunchesTest, ReplaysWhatWasRecorded)
{
    CapturedLaunches launches;
    for (std::uint32_t i = 1; i <= 5; ++i) {
        add(launches, 1, 3);
        EXPECT_EQ(value(), 6 * i);
    }
    EXPECT_EQ(launches.recorded(), 1U);
    EXPECT_EQ(launches.replayed(), 4U);
}

TEST_F(CapturedLaunchesTest, KeysTellWorkApart)
{
    CapturedLaunches launches;
    for (int i = 0; i < 3; ++i) {
        add(launches, 1, 1);
        add(launches, 2, 100);
    }
    EXPECT_EQ(value(), 606U);
    EXPECT_EQ(launches.recorded(), 2U);
}

TEST_F(CapturedLaunchesTest, KeepsNoMoreThanItsCapacity)
{
    CapturedLaunches launches(2);
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t key = 0; key < 5; ++key) {
            add(launches, key, 1);
            add(launches, key, 1);
            EXPECT_LE(launches.recorded(), 2U);
        }
    }
    EXPECT_EQ(value(), 60U);
    launches.clear();
    EXPECT_EQ(launches.recorded(), 0U);
    add(launches, 0, 1);
    EXPECT_EQ(value(), 62U);
}

TEST_F(CapturedLaunchesTest, PassesErrorsOnAndStaysUsable)
{
    CapturedLaunches launches;
    const std::array<std::uint64_t, 2> words{9, 7};
    const auto failing = [](cudaStream_t) { throw std::runtime_error("no"); };
    EXPECT_THROW(launches.run(words, lease_, failing), std::runtime_error);
    add(launches, 9, 1);
    EXPECT_THROW(launches.run(words, lease_, failing), std::runtime_error);
    EXPECT_EQ(launches.recorded(), 0U);
    add(launches, 9, 1);
    EXPECT_EQ(value(), 4U);
    EXPECT_EQ(launches.recorded(), 1U);
}

}  // namespace

}  // namespace pgwarp::cuda
