// Kernels that take more than 48 KB of shared memory must be allowed to.
#pragma once

namespace pgwarp::cuda
{

enum class SharedMemoryUse {
    as_needed,      // takes no caches from who needs little
    before_caches,  // as much as a multiprocessor has, for kernels that read nothing twice: so many more blocks fit
};

// Lets the kernel's launches on the current device take all the shared memory that a block can have there. Done once
// for each kernel and device. Throws CudaError.
void allow_shared_memory(const void* kernel, SharedMemoryUse use);

template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), SharedMemoryUse use = SharedMemoryUse::as_needed)
{
    allow_shared_memory(reinterpret_cast<const void*>(kernel), use);
}

}  // namespace pgwarp::cuda
