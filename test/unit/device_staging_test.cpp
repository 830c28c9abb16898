// Bulk copies through page-locked memory: their bytes, and that none is under way where one is cancelled.
#include "cluster/staging.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "device/context.h"
#include "device/wait.h"
#include "fake_cuda.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;

class StagingTest : public testing::Test
{
protected:
    // One for all tests: rings are kept, and their events know streams of tests before.
    static Context& context()
    {
        static Context one{0, std::uint64_t{1} << 30};
        return one;
    }
    ThreadPool pool{2};
    Context::Lease stream = context().lease(Priority::build);
};

TEST_F(StagingTest, CopiesThereAndBack)
{
    Staging staging(stream);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, 5 * Staging::slot_bytes + 3}) {
        std::vector<std::byte> given(bytes);
        for (std::size_t i = 0; i < bytes; ++i) given[i] = static_cast<std::byte>(i % 251);
        DeviceArray<std::byte> there(context().pool(), bytes, "test", stream);
        std::vector<std::byte> back(bytes);
        staging.upload(given.data(), bytes, there.data(), pool, nullptr);
        staging.download(there.data(), bytes, back.data(), pool, nullptr);
        EXPECT_TRUE(back == given) << bytes;
    }
}

// The stream is held until the ring is full and the copy is cancelled, so copies are under way when it ends.
TEST_F(StagingTest, EndsCopiesThatAreCancelled)
{
    Staging staging(stream);
    const std::vector<std::byte> given(8 * Staging::slot_bytes, std::byte{1});
    std::vector<std::byte> there(given.size());
    CancelToken cancel;
    std::atomic<bool> held{true};
    launch(stream, [&] { held.wait(true); });
    const std::size_t before = fake_cuda().copies;
    std::thread canceller([&] {
        while (fake_cuda().copies < before + Staging::slots) std::this_thread::yield();
        cancel.cancel();
        held = false;
        held.notify_all();
    });
    EXPECT_THROW(staging.upload(given.data(), given.size(), there.data(), pool, &cancel), Cancelled);
    const std::size_t begun = fake_cuda().copies - before;
    EXPECT_GE(begun, Staging::slots);
    EXPECT_LT(begun, 8U);
    for (std::size_t slot = 0; slot < begun; ++slot)
        EXPECT_EQ(there[(slot + 1) * Staging::slot_bytes - 1], std::byte{1}) << slot;
    canceller.join();
}

}  // namespace
}  // namespace pgwarp::test
