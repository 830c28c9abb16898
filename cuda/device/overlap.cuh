// Launches in a row that overlap: from Hopper on a kernel may come to the multiprocessors while the one before it in
// the stream ends (programmatic dependent launch, CUDA programming guide). It waits there until all that came before
// has been done and written; before that it may touch nothing that others write. Elsewhere these are ordinary launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "device/context.h"
#include "device/error.h"

namespace pgwarp::cuda
{

// The first thing in a kernel that is launched early.
__device__ inline void wait_for_previous()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// In short kernels: the next may come now, if it is launched early.
__device__ inline void let_next_come()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// For launches that need other attributes too.
inline cudaLaunchAttribute early_launch()
{
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return attribute;
}

// To be followed by check_launch().
template <class... Parameters>
void launch_early(const Context& context, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                  cudaStream_t stream, std::type_identity_t<Parameters>... arguments)
{
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cudaLaunchAttribute early = early_launch();
    config.attrs = &early;
    config.numAttrs = context.has_early_launches() ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, arguments...), "launching a kernel");
}

}  // namespace pgwarp::cuda
