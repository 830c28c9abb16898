// Memory that searches on a device keep between them: carved, grown, reused, and freed where a search fails.
#include "device/workspace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "device/carver.h"
#include "device/error.h"
#include "fake_cuda.h"
#include "methods/method.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;

struct Layout {
    double* values = nullptr;
    std::byte* flag = nullptr;
    std::uint32_t* numbers = nullptr;
    float* none = nullptr;
    float* floats = nullptr;

    void operator()(Carver& memory)
    {
        values = memory.take<double>(33);
        flag = memory.take<std::byte>(1);
        numbers = memory.take<std::uint32_t>(64);
        none = memory.take<float>(0);
        floats = memory.take<float>(65);
    }
};

TEST(Carver, TellsTheSizeOfWhatItPlaces)
{
    Layout layout;
    const auto lay_out = [&](Carver& memory) { layout(memory); };
    const std::size_t bytes = carved_bytes(lay_out);
    EXPECT_EQ(layout.values, nullptr);
    EXPECT_EQ(layout.floats, nullptr);
    EXPECT_EQ(bytes, 512U + 256 + 256 + 512);
    alignas(Carver::alignment) std::byte memory[2048];
    Carver carver(memory);
    layout(carver);
    EXPECT_EQ(carver.used(), bytes);
    EXPECT_EQ(reinterpret_cast<std::byte*>(layout.values), memory);
    EXPECT_EQ(layout.flag, memory + 512);
    EXPECT_EQ(reinterpret_cast<std::byte*>(layout.numbers), memory + 768);
    EXPECT_EQ(reinterpret_cast<std::byte*>(layout.floats), memory + 1024);
}

class WorkspaceTest : public testing::Test
{
protected:
    Context context{0, std::uint64_t{1} << 30};
    Workspaces workspaces{context, "test workspace"};
};

TEST_F(WorkspaceTest, GrowsToTheLargestSearchAndStays)
{
    for (const std::size_t bytes : {1000, 5000, 200000}) {
        const Workspaces::Lease lease(workspaces);
        lease->device(bytes);
        lease->pinned(bytes);
        EXPECT_EQ(lease->device_bytes(), bytes);
    }
    const std::size_t device = fake_cuda().device_allocations;
    const std::size_t pinned = fake_cuda().pinned_allocations;
    for (const std::size_t bytes : {1, 200000, 70}) {
        const Workspaces::Lease lease(workspaces);
        std::memset(lease->pinned(bytes), 1, bytes);
        lease->device(bytes);
    }
    EXPECT_EQ(fake_cuda().device_allocations, device);
    EXPECT_EQ(fake_cuda().pinned_allocations, pinned);
    EXPECT_EQ(context.pool().used_by_name().at("test workspace"), 200000U);
}

TEST_F(WorkspaceTest, AreOneSearchsAtATime)
{
    const Workspaces::Lease first(workspaces);
    {
        const Workspaces::Lease second(workspaces);
        EXPECT_NE(&*first, &*second);
        EXPECT_NE(static_cast<cudaStream_t>(first->stream()), static_cast<cudaStream_t>(second->stream()));
    }
    const Workspaces::Lease third(workspaces);
    EXPECT_NE(&*first, &*third);
}

TEST_F(WorkspaceTest, KeepsNoMemoryThatIsTooLarge)
{
    {
        const Workspaces::Lease lease(workspaces);
        lease->device(std::size_t{65} << 20);
    }
    EXPECT_EQ(context.pool().used(), 0U);
}

// However many searches ran at once, and of however many indexes.
TEST_F(WorkspaceTest, IdleOnesShareALimitOfPageLockedMemory)
{
    constexpr std::size_t each = std::size_t{200} << 20;
    const std::uint64_t before = pinned_bytes();
    Workspaces others{context, "other workspace"};
    const auto search = [](Workspaces& of) {
        const Workspaces::Lease leases[] = {Workspaces::Lease(of), Workspaces::Lease(of), Workspaces::Lease(of),
                                            Workspaces::Lease(of)};
        for (const Workspaces::Lease& lease : leases) lease->pinned(each);
    };
    search(workspaces);
    EXPECT_EQ(pinned_bytes() - before, 4 * each);
    search(others);
    EXPECT_EQ(pinned_bytes() - before, 5 * each);
    workspaces.drop_idle();
    search(others);
    EXPECT_EQ(pinned_bytes() - before, 4 * each);
}

TEST_F(WorkspaceTest, IdleOnesAreDropped)
{
    {
        const Workspaces::Lease lease(workspaces);
        lease->device(1000);
    }
    EXPECT_EQ(context.pool().used(), 1000U);
    workspaces.drop_idle();
    EXPECT_EQ(context.pool().used(), 0U);
}

// A kernel that is still writing when its search fails writes to memory that is still allocated.
TEST_F(WorkspaceTest, IsDrainedAndFreedWhereASearchFails)
{
    bool ran = false;
    EXPECT_THROW(
        {
            const Workspaces::Lease lease(workspaces);
            std::byte* const pinned = lease->pinned(1000);
            std::byte* const device = lease->device(1000);
            launch(lease->stream(), [&ran, pinned, device] {
                std::memset(pinned, 1, 1000);
                std::memset(device, 1, 1000);
                ran = true;
            });
            throw std::runtime_error("cancelled");
        },
        std::runtime_error);
    EXPECT_TRUE(ran);
    EXPECT_EQ(context.pool().used(), 0U);
}

TEST_F(WorkspaceTest, IsNotKeptWhereMemoryRanShort)
{
    const auto grow = [this] {
        const Workspaces::Lease lease(workspaces);
        lease->device(1000);
        lease->device(std::size_t{2} << 30);
    };
    EXPECT_THROW(grow(), DeviceOutOfMemory);
    EXPECT_EQ(context.pool().used(), 0U);
}

TEST_F(WorkspaceTest, EventsAreMadeOnce)
{
    const Workspaces::Lease lease(workspaces);
    int done = 0;
    for (int i = 0; i < 3; ++i) {
        launch(lease->stream(), [&done] { ++done; });
        lease->event(0).record(lease->stream());
        lease->event(0).wait("waiting");
        EXPECT_EQ(done, i + 1);
    }
}

}  // namespace
}  // namespace pgwarp::test
