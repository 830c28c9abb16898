// How many processors there are, and how many of them for this process.
#pragma once

#include <cstddef>

namespace pgwarp
{

// Those that the system may run it on (affinity, cpuset), and no more than its control group has time of (cpu.max). At
// least 1. More threads than that wait for each other while one of them isn't let run.
std::size_t usable_processors();

// Those of the whole system, whoever may use them. At least 1.
std::size_t system_processors();

}  // namespace pgwarp
