#include "numeric/control_group.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace pgwarp
{

namespace
{

namespace fs = std::filesystem;

// Reads one number from a file; `fallback` where there is none ("max", no file).
std::uint64_t read_number(const fs::path& path, std::uint64_t fallback)
{
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? value : fallback;
}

// Reads the bytes of the file cache that the kernel takes back first.
std::uint64_t inactive_file_bytes(const fs::path& group)
{
    std::ifstream file(group / "memory.stat");
    std::string name;
    std::uint64_t bytes = 0;
    while (file >> name >> bytes) {
        if (name == "inactive_file") return bytes;
    }
    return 0;
}

}  // namespace

std::vector<fs::path> control_groups(const fs::path& system, const fs::path& process)
{
    // The line of version 2 is "0::/path".
    fs::path own;
    std::ifstream file(process);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("0::/")) own = line.substr(4);
    }
    std::vector<fs::path> groups;
    // A path that leads out of the mount belongs to a process of another namespace.
    const bool inside = std::none_of(own.begin(), own.end(), [](const fs::path& part) { return part == ".."; });
    for (; inside && !own.empty(); own = own.parent_path()) groups.push_back(system / own);
    groups.push_back(system);
    return groups;
}

std::vector<fs::path> control_groups()
{
    return control_groups("/sys/fs/cgroup", "/proc/self/cgroup");
}

std::uint64_t memory_left_to(const std::vector<fs::path>& groups)
{
    std::uint64_t left = no_memory_limit;
    for (const fs::path& group : groups) {
        const std::uint64_t limit = std::min(read_number(group / "memory.max", no_memory_limit),
                                             read_number(group / "memory.high", no_memory_limit));
        if (limit == no_memory_limit) continue;
        const std::uint64_t charged = read_number(group / "memory.current", 0);
        const std::uint64_t used = charged - std::min(charged, inactive_file_bytes(group));
        left = std::min(left, limit > used ? limit - used : 0);
    }
    return left;
}

double processor_quota_of(const std::vector<fs::path>& groups)
{
    double least = std::numeric_limits<double>::infinity();
    for (const fs::path& group : groups) {
        std::ifstream file(group / "cpu.max");
        double quota = 0;
        double period = 0;
        if (file >> quota >> period && quota > 0 && period > 0) least = std::min(least, quota / period);
    }
    return least;
}

}  // namespace pgwarp
