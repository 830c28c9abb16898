// Affinity and the quota of the control group, read from the system.
#include "numeric/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "numeric/control_group.h"

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

// The quota of the control groups, in processors; the largest number where there is none.
std::size_t quota_processors()
{
    const double quota = processor_quota_of(control_groups());
    return std::isinf(quota) ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(std::ceil(quota));
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
