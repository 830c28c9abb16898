// A fault for tests: a device that hangs for a while.
#pragma once

#include <cstdint>

#include "device/context.h"

namespace pgwarp::cuda
{

// Launches a kernel that ends after so many seconds.
void keep_busy(cudaStream_t stream, std::uint32_t seconds);

// That, and waits for it as a search does.
void hang(Context& context, std::uint32_t seconds);

}  // namespace pgwarp::cuda
