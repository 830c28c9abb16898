// Limits of control groups, read from folders that are laid out as the kernel's.
#include "numeric/control_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>

namespace pgwarp
{
namespace
{

namespace fs = std::filesystem;

class ControlGroups : public ::testing::Test
{
protected:
    ControlGroups() { fs::create_directories(service_); }
    ~ControlGroups() override { fs::remove_all(root_); }

    static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text << '\n'; }

    // The groups of a process whose /proc/self/cgroup has this text.
    std::vector<fs::path> groups(const std::string& text) const
    {
        write(root_ / "cgroup", text);
        return control_groups(mount_, root_ / "cgroup");
    }

    const fs::path root_ = fs::temp_directory_path() / ("pgwarp_control_group." + std::to_string(::getpid()));
    const fs::path mount_ = root_ / "mount";
    const fs::path slice_ = mount_ / "system.slice";
    const fs::path service_ = slice_ / "postgresql.service";
};

TEST_F(ControlGroups, AreTheProcesssOwnAndThoseAroundIt)
{
    EXPECT_EQ(groups("0::/system.slice/postgresql.service"), (std::vector<fs::path>{service_, slice_, mount_}));
    EXPECT_EQ(groups("4:memory:/old\n0::/system.slice"), (std::vector<fs::path>{slice_, mount_}));
    EXPECT_EQ(groups("0::/"), std::vector<fs::path>{mount_});
    EXPECT_EQ(groups("0::/../elsewhere"), std::vector<fs::path>{mount_});
    EXPECT_EQ(groups(""), std::vector<fs::path>{mount_});
}

TEST_F(ControlGroups, LeaveTheMemoryOfTheTightest)
{
    const std::vector<fs::path> all = groups("0::/system.slice/postgresql.service");
    EXPECT_EQ(memory_left_to(all), no_memory_limit);
    write(service_ / "memory.max", "max");
    write(service_ / "memory.current", "700");
    EXPECT_EQ(memory_left_to(all), no_memory_limit);
    write(service_ / "memory.max", "1000");
    EXPECT_EQ(memory_left_to(all), 300U);
    write(service_ / "memory.stat", "anon 500\ninactive_file 150\nactive_file 50");
    EXPECT_EQ(memory_left_to(all), 450U);
    write(service_ / "memory.high", "800");
    EXPECT_EQ(memory_left_to(all), 250U);
    write(slice_ / "memory.max", "5000");
    write(slice_ / "memory.current", "4900");
    EXPECT_EQ(memory_left_to(all), 100U);
    write(slice_ / "memory.current", "6000");
    EXPECT_EQ(memory_left_to(all), 0U);
}

TEST_F(ControlGroups, HaveTheLeastQuotaOfProcessors)
{
    const std::vector<fs::path> all = groups("0::/system.slice/postgresql.service");
    EXPECT_TRUE(std::isinf(processor_quota_of(all)));
    write(service_ / "cpu.max", "max 100000");
    EXPECT_TRUE(std::isinf(processor_quota_of(all)));
    write(slice_ / "cpu.max", "250000 100000");
    EXPECT_EQ(processor_quota_of(all), 2.5);
    write(service_ / "cpu.max", "400000 100000");
    EXPECT_EQ(processor_quota_of(all), 2.5);
}

}  // namespace
}  // namespace pgwarp
