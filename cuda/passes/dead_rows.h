// Tombstones in the two forms that the passes read.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

// Null pointers: no row is dead.
struct DeadRows {
    const std::uint64_t* bits = nullptr;  // device
    const float* penalties = nullptr;     // device: of all positions, dead rows marked
};

}  // namespace pgwarp::cuda
