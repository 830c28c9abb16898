// Tombstones as the passes read them.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

// Null: no row is dead.
struct DeadRows {
    const std::uint64_t* bits = nullptr;  // device
    const float* penalties = nullptr;     // device: those of the rows, dead ones marked
};

}  // namespace pgwarp::cuda
