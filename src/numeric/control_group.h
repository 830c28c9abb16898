// The limits of the control groups that this process is in (version 2 of Linux's control groups).
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

namespace pgwarp
{

// Returns the folders of the process's control group and of all groups that it lies in, the innermost first. `system`
// is the mount of their hierarchy, `process` the file that names the group (/proc/self/cgroup). In a container the
// process's group is the mount itself; a unit of systemd lies below it, and so do the limits that systemd sets.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& system,
                                                  const std::filesystem::path& process);
std::vector<std::filesystem::path> control_groups();

constexpr std::uint64_t no_memory_limit = std::numeric_limits<std::uint64_t>::max();

// Returns the memory that the tightest of the groups leaves, in bytes: memory.max (and memory.high, at which the kernel
// stalls a group) less memory.current. The file cache counts as used there but is given up for memory: it is added
// back.
std::uint64_t memory_left_to(const std::vector<std::filesystem::path>& groups);

// Returns the least quota of the groups in processors (cpu.max), not rounded; infinity where there is none.
double processor_quota_of(const std::vector<std::filesystem::path>& groups);

}  // namespace pgwarp
