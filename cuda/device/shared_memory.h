// Kernels that take more than 48 KB of shared memory must be allowed to.
#pragma once

namespace pgwarp::cuda
{

// Lets the kernel's launches on the current device take all the shared memory that a block can have there. Done once
// for each kernel and device. Takes no more memory by itself, nor caches from who needs little. Throws CudaError.
void allow_shared_memory(const void* kernel);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...))
{
    allow_shared_memory(reinterpret_cast<const void*>(kernel));
}

}  // namespace pgwarp::cuda
