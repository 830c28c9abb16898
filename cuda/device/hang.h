// A fault for tests: a device that hangs for a while.
#pragma once

#include <cstdint>

#include "device/context.h"

namespace pgwarp::cuda
{

// Launches a kernel that runs for `seconds`.
void keep_busy(cudaStream_t stream, std::uint32_t seconds);

// Launches such a kernel and waits for it as a search waits.
void hang(Context& context, std::uint32_t seconds);

}  // namespace pgwarp::cuda
