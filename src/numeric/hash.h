// A deterministic mixing function, also for device code. Samples and seeds derive from it, never from a clock.
#pragma once

#include <cstdint>

#include "numeric/host_device.h"

namespace pgwarp
{

// The finaliser of splitmix64: a bijection of 64-bit numbers.
PGWARP_HOST_DEVICE inline std::uint64_t mix_hash(std::uint64_t value)
{
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

}  // namespace pgwarp
