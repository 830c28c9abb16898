// The permission that kernels need for more than 48 KB of shared memory.
#pragma once

namespace pgwarp::cuda
{

enum class SharedMemoryUse {
    as_needed,      // leaves the split between shared memory and L1 cache to the driver
    before_caches,  // the largest share for shared memory, for kernels that read nothing twice: more blocks fit
};

// Lets launches of the kernel on the current device use all the shared memory that a block can have. The driver is
// called once for each kernel and device. Throws CudaError.
void allow_shared_memory(const void* kernel, SharedMemoryUse use);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), SharedMemoryUse use = SharedMemoryUse::as_needed)
{
    allow_shared_memory(reinterpret_cast<const void*>(kernel), use);
}

}  // namespace pgwarp::cuda
