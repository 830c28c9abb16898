// The number of processors, of the system and of this process.
#pragma once

#include <cstddef>

namespace pgwarp
{

// Returns the number of processors that the system may run this process on (affinity, cpuset), limited by the control
// group's quota (cpu.max). At least 1. More threads than this would wait for each other while one of them is
// descheduled.
std::size_t usable_processors();

// Returns the number of processors of the whole system, also those that this process may not use. At least 1.
std::size_t system_processors();

}  // namespace pgwarp
