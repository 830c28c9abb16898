#include "device/shared_memory.h"

#include <cuda_runtime_api.h>

#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

using KernelOnDevice = std::pair<int, const void*>;

std::shared_mutex allowed_mutex;

std::set<KernelOnDevice>& allowed_kernels()
{
    static std::set<KernelOnDevice> kernels;
    return kernels;
}

void allow(const KernelOnDevice& which, SharedMemoryUse use)
{
    int most = 0;
    cudaFuncAttributes attributes{};
    check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, which.first), "asking for the device");
    check(cudaFuncGetAttributes(&attributes, which.second), "asking for a kernel");
    check(cudaFuncSetAttribute(which.second, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               most - static_cast<int>(attributes.sharedSizeBytes)),
          "asking for shared memory");
    if (use == SharedMemoryUse::as_needed) return;
    check(cudaFuncSetAttribute(which.second, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "asking for shared memory");
}

}  // namespace

void allow_shared_memory(const void* kernel, SharedMemoryUse use)
{
    KernelOnDevice which{0, kernel};
    check(cudaGetDevice(&which.first), "asking for the device");
    {
        const std::shared_lock lock(allowed_mutex);
        if (allowed_kernels().contains(which)) return;
    }
    const std::unique_lock lock(allowed_mutex);
    if (!allowed_kernels().contains(which)) {
        allow(which, use);
        allowed_kernels().insert(which);
    }
}

}  // namespace pgwarp::cuda
