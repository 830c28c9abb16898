#include "device/memory.h"

#include <new>

#include "device/error.h"

namespace pgwarp::cuda
{

MemoryPool::MemoryPool(int device, std::uint64_t budget) : budget_(budget)
{
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    check(cudaMemPoolCreate(&pool_, &properties), "making the memory pool");
    // Workspaces come and go with every batch: what is freed stays at hand.
    std::uint64_t keep = std::uint64_t{2} << 30;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "configuring the memory pool");
}

MemoryPool::~MemoryPool()
{
    if (pool_ != nullptr) (void)cudaMemPoolDestroy(pool_);
}

void* MemoryPool::allocate(std::size_t bytes, const char* name, cudaStream_t stream)
{
    {
        std::lock_guard lock(mutex_);
        if (budget_ != 0 && used_ + bytes > budget_) throw std::bad_alloc();
        used_ += bytes;
        used_by_name_[name] += bytes;
    }
    void* memory = nullptr;
    const cudaError_t code = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
    if (code != cudaSuccess) {
        std::lock_guard lock(mutex_);
        used_ -= bytes;
        used_by_name_[name] -= bytes;
    }
    check(code, name);
    return memory;
}

void MemoryPool::release(void* memory, std::size_t bytes, const char* name, cudaStream_t stream) noexcept
{
    (void)cudaFreeAsync(memory, stream);
    std::lock_guard lock(mutex_);
    used_ -= bytes;
    used_by_name_[name] -= bytes;
}

std::uint64_t MemoryPool::used() const
{
    std::lock_guard lock(mutex_);
    return used_;
}

std::map<std::string, std::uint64_t> MemoryPool::used_by_name() const
{
    std::lock_guard lock(mutex_);
    return used_by_name_;
}

void MemoryPool::trim()
{
    check(cudaMemPoolTrimTo(pool_, 0), "giving memory back");
}

namespace detail
{

void* allocate_pinned(std::size_t bytes)
{
    void* memory = nullptr;
    if (bytes > 0) check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "pinning host memory");
    return memory;
}

void free_pinned(void* memory) noexcept
{
    (void)cudaFreeHost(memory);
}

}  // namespace detail

}  // namespace pgwarp::cuda
