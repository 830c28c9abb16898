#include "device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "device/error.h"

namespace pgwarp::cuda
{

namespace
{

// The part of the budget that builds leave to searches, whose workspaces take some hundred megabytes.
constexpr std::uint64_t searches_part = 16;
constexpr std::uint64_t most_for_searches = std::uint64_t{1} << 30;

thread_local int builds_of_thread = 0;

}  // namespace

BuildAllocations::BuildAllocations()
{
    ++builds_of_thread;
}

BuildAllocations::~BuildAllocations()
{
    --builds_of_thread;
}

std::uint64_t MemoryPool::limit() const
{
    return builds_of_thread > 0 ? budget_ - std::min(budget_ / searches_part, most_for_searches) : budget_;
}

MemoryPool::MemoryPool(int device, std::uint64_t budget) : device_(device), budget_(budget)
{
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    check(cudaMemPoolCreate(&pool_, &properties), "making the memory pool");
    // Workspaces come and go with every batch: freed memory stays in the pool.
    std::uint64_t keep = std::uint64_t{2} << 30;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "configuring the memory pool");
}

MemoryPool::~MemoryPool()
{
    if (pool_ != nullptr) (void)cudaMemPoolDestroy(pool_);
}

cudaError_t MemoryPool::try_allocate(void*& memory, std::size_t bytes, const char* name, cudaStream_t stream)
{
    {
        std::lock_guard lock(mutex_);
        if (budget_ != 0 && used_ + bytes > limit()) return cudaErrorMemoryAllocation;
        used_by_name_[name] += bytes;  // may throw
        used_ += bytes;
    }
    const cudaError_t code = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
    if (code == cudaSuccess) return code;
    (void)cudaGetLastError();
    std::lock_guard lock(mutex_);
    used_ -= bytes;
    used_by_name_[name] -= bytes;
    return code;
}

void* MemoryPool::allocate(std::size_t bytes, const char* name, cudaStream_t stream)
{
    void* memory = nullptr;
    cudaError_t code = try_allocate(memory, bytes, name, stream);
    if (code == cudaErrorMemoryAllocation && has_room(bytes)) code = try_allocate(memory, bytes, name, stream);
    check(code, name);
    return memory;
}

bool MemoryPool::has_room(std::uint64_t bytes)
{
    const std::uint64_t before = room();
    if (before >= bytes) return true;
    if (!relief_) return false;
    relief_(bytes - before);
    return room() >= bytes;
}

std::uint64_t MemoryPool::room() const
{
    std::size_t free = 0;
    std::size_t total = 0;
    std::uint64_t reserved = 0;
    std::uint64_t taken = 0;
    int current = 0;
    check(cudaGetDevice(&current), "asking for the device");
    if (current != device_) check(cudaSetDevice(device_), "choosing the device");
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    if (current != device_) check(cudaSetDevice(current), "choosing the device");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "asking the memory pool");
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &taken), "asking the memory pool");
    const std::uint64_t on_device = free + (reserved > taken ? reserved - taken : 0);
    const std::uint64_t now = used();
    if (budget_ == 0) return on_device;
    return std::min(on_device, limit() > now ? limit() - now : 0);
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

std::uint64_t MemoryPool::unspent() const
{
    const std::uint64_t now = used();
    if (budget_ == 0) return std::numeric_limits<std::uint64_t>::max();
    return limit() > now ? limit() - now : 0;
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

namespace
{

std::atomic<std::uint64_t> pinned{0};
constexpr std::size_t page = std::size_t{2} << 20;  // huge

std::size_t whole_pages(std::size_t bytes)
{
    return (bytes + page - 1) / page * page;
}

// Throws std::bad_alloc, not DeviceOutOfMemory, where memory of the host is short: evicting an index from the device
// would not help. The codes of a refused page lock mean short memory too.
void check_pinned(cudaError_t code)
{
    if (code == cudaErrorMemoryAllocation || code == cudaErrorInvalidValue || code == cudaErrorNotPermitted) {
        (void)cudaGetLastError();
        throw std::bad_alloc();
    }
    check(code, "pinning host memory");
}

}  // namespace

std::uint64_t pinned_bytes()
{
    return pinned.load(std::memory_order_relaxed);
}

namespace detail
{

void* allocate_pinned(std::size_t bytes)
{
    void* memory = nullptr;
    if (bytes == 0) return memory;
    check_pinned(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    pinned.fetch_add(bytes, std::memory_order_relaxed);
    return memory;
}

void free_pinned(void* memory, std::size_t bytes) noexcept
{
    (void)cudaFreeHost(memory);
    pinned.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace detail

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes)
{
    if (bytes == 0) return;
    void* memory =
        ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    (void)::madvise(memory, whole_pages(bytes), MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(memory);
}

HostMemory::~HostMemory()
{
    if (data_ == nullptr) return;
    if (locked_) {
        (void)cudaHostUnregister(data_);
        pinned.fetch_sub(bytes_, std::memory_order_relaxed);
    }
    (void)::munmap(data_, whole_pages(bytes_));
}

void HostMemory::lock()
{
    if (data_ == nullptr || locked_) return;
    check_pinned(cudaHostRegister(data_, whole_pages(bytes_), cudaHostRegisterPortable | cudaHostRegisterMapped));
    locked_ = true;
    pinned.fetch_add(bytes_, std::memory_order_relaxed);
}

const std::byte* HostMemory::on_device() const
{
    if (data_ == nullptr) return nullptr;
    void* address = nullptr;
    check(cudaHostGetDevicePointer(&address, data_, 0), "mapping host memory");
    return static_cast<const std::byte*>(address);
}

}  // namespace pgwarp::cuda
