// Kernels that take more than 48 KB of shared memory ask for it once, not at every launch.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>

#include "device/error.h"

namespace pgwarp::cuda::ivfadc
{

template <auto Kernel>
void allow_shared_memory(std::uint32_t bytes)
{
    constexpr int devices = 64;
    static std::atomic<std::uint32_t> allowed[devices];
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    std::atomic<std::uint32_t>& here = allowed[device % devices];
    if (here.load(std::memory_order_acquire) >= bytes) return;
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
          "asking for shared memory");
    here.store(bytes, std::memory_order_release);
}

}  // namespace pgwarp::cuda::ivfadc
