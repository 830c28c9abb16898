// Affinity and the quota of the control group, read from the system.
#include "numeric/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

namespace pgwarp
{

namespace
{

std::size_t allowed_processors()
{
    constexpr std::size_t most = 8192;
    const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(most), free_set);
    if (!set || sched_getaffinity(0, CPU_ALLOC_SIZE(most), set.get()) != 0) return std::thread::hardware_concurrency();
    return static_cast<std::size_t>(CPU_COUNT_S(CPU_ALLOC_SIZE(most), set.get()));
}

// The quota of the control group, in processors; the largest number where there is none.
std::size_t quota_processors()
{
    std::ifstream file("/sys/fs/cgroup/cpu.max");
    double quota = 0;
    double period = 0;
    if (!(file >> quota >> period) || !(quota > 0) || !(period > 0)) return std::numeric_limits<std::size_t>::max();
    return static_cast<std::size_t>(std::ceil(quota / period));
}

}  // namespace

std::size_t usable_processors()
{
    return std::max<std::size_t>(1, std::min(allowed_processors(), quota_processors()));
}

std::size_t system_processors()
{
    return static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace pgwarp
