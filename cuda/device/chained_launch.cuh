// Launches whose blocks are placed while the kernel before still runs (programmatic dependent launch, from sm_90 on;
// elsewhere ordinary launches).
//
// A kernel of a chain calls wait_for_kernel_before() in every thread before it reads or overwrites memory of earlier
// kernels; after the call all earlier kernels are done. A kernel that calls let_next_start() early lets the blocks of
// the next kernel be placed early.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/error.h"

namespace pgwarp::cuda
{

__device__ inline void wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

__device__ inline void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

inline cudaLaunchAttribute early_launch()
{
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return attribute;
}

// Whether the current device has programmatic dependent launch.
inline bool chains_launches()
{
    int device = 0;
    int major = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking for the device");
    return major >= 9;
}

// Launches in clusters of `cluster` blocks. cluster > 1 needs sm_90. early = false makes an ordinary launch: waiting
// blocks take room from the blocks of the kernel before. Throws CudaError.
template <class... Parameters>
void launch_clusters(std::uint32_t cluster, bool early, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                     std::size_t shared_bytes, cudaStream_t stream, const char* name,
                     std::type_identity_t<Parameters>... arguments)
{
    cudaLaunchAttribute attributes[2]{};
    unsigned count = 0;
    if (early && chains_launches()) attributes[count++] = early_launch();
    if (cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = cluster;
        attributes[count].val.clusterDim.y = 1;
        attributes[count].val.clusterDim.z = 1;
        ++count;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

template <class... Parameters>
void launch_chained(bool early, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                    cudaStream_t stream, const char* name, std::type_identity_t<Parameters>... arguments)
{
    launch_clusters(1, early, kernel, grid, block, shared_bytes, stream, name, arguments...);
}

}  // namespace pgwarp::cuda
