// Device memory: one pool for each device. Each allocation has a named purpose and an owner, and counts against a
// budget.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace pgwarp::cuda
{

// While one lives, the calling thread allocates for a build, and builds leave a part of the budget to searches: a
// search without room would evict its index from the device.
class BuildAllocations
{
public:
    BuildAllocations();
    ~BuildAllocations();
    BuildAllocations(const BuildAllocations&) = delete;
    BuildAllocations& operator=(const BuildAllocations&) = delete;
};

// Thread-safe. Allocations are ordered by stream (cudaMallocAsync); freed memory stays in the pool up to its threshold.
class MemoryPool
{
public:
    // budget: bytes; 0 = no limit but the device's.
    MemoryPool(int device, std::uint64_t budget);
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    // `name` is a static string: the purpose ("exact vectors", "search workspace"). Throws std::bad_alloc past the
    // budget or the device's memory.
    void* allocate(std::size_t bytes, const char* name, cudaStream_t stream);
    // Before an allocation fails, `relief` is called with the number of missing bytes; then the allocation is tried
    // once more. The allocating thread calls it without locks of the pool. Set it before several threads use the pool.
    void set_relief(std::function<void(std::uint64_t bytes)> relief) { relief_ = std::move(relief); }
    // Whether `bytes` can be allocated, if necessary after relief.
    bool has_room(std::uint64_t bytes);
    // Bytes that can be allocated within the budget and the device's free memory.
    std::uint64_t room() const;
    void release(void* memory, std::size_t bytes, const char* name, cudaStream_t stream) noexcept;

    std::uint64_t used() const;
    // The rest of the budget, without a look at the device's free memory: costs no call to the driver.
    std::uint64_t unspent() const;
    std::uint64_t budget() const { return budget_; }
    std::map<std::string, std::uint64_t> used_by_name() const;
    // Gives freed memory back to the device.
    void trim();

private:
    // The bytes that the calling thread may bring used() to.
    std::uint64_t limit() const;
    cudaError_t try_allocate(void*& memory, std::size_t bytes, const char* name, cudaStream_t stream);

    const int device_;
    const std::uint64_t budget_;
    cudaMemPool_t pool_ = nullptr;
    std::function<void(std::uint64_t)> relief_;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    std::map<std::string, std::uint64_t> used_by_name_;
};

// An array in device memory. Contents are not initialised. Allocated and freed in the order of `stream`, which must
// outlive the array. Work of other streams on it must be ordered after the allocation by events.
template <class T>
class DeviceArray
{
public:
    DeviceArray() = default;
    DeviceArray(MemoryPool& pool, std::size_t count, const char* name, cudaStream_t stream)
        : pool_(&pool), count_(count), name_(name), stream_(stream)
    {
        if (count > 0) data_ = static_cast<T*>(pool.allocate(bytes(), name, stream));
    }
    DeviceArray(DeviceArray&& other) noexcept { swap(other); }
    DeviceArray& operator=(DeviceArray&& other) noexcept
    {
        DeviceArray moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~DeviceArray()
    {
        if (data_ != nullptr) pool_->release(data_, bytes(), name_, stream_);
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }

    void swap(DeviceArray& other) noexcept
    {
        std::swap(pool_, other.pool_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        std::swap(name_, other.name_);
        std::swap(stream_, other.stream_);
    }

private:
    MemoryPool* pool_ = nullptr;
    T* data_ = nullptr;
    std::size_t count_ = 0;
    const char* name_ = "";
    cudaStream_t stream_ = nullptr;
};

// Page-locked host memory, reachable by the device.
template <class T>
class PinnedArray;

// Bytes of page-locked memory of this process, of both kinds below.
std::uint64_t pinned_bytes();

namespace detail
{
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory, std::size_t bytes) noexcept;
}  // namespace detail

template <class T>
class PinnedArray
{
public:
    PinnedArray() = default;
    explicit PinnedArray(std::size_t count)
        : data_(static_cast<T*>(detail::allocate_pinned(count * sizeof(T))), Free{count * sizeof(T)}), count_(count)
    {
    }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return count_; }
    std::span<T> span() { return {data_.get(), count_}; }

private:
    struct Free {
        std::size_t bytes = 0;
        void operator()(T* memory) const { detail::free_pinned(memory, bytes); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t count_ = 0;
};

// Gigabytes of host memory that any number of threads fill first and lock() page-locks then: locking pages that exist
// takes a fraction of the time, and huge pages a fraction of that again. Zeros at first.
class HostMemory
{
public:
    HostMemory() = default;
    // Throws std::bad_alloc.
    explicit HostMemory(std::size_t bytes);
    ~HostMemory();
    HostMemory(HostMemory&& other) noexcept { swap(other); }
    HostMemory& operator=(HostMemory&& other) noexcept
    {
        HostMemory moved(std::move(other));
        swap(moved);
        return *this;
    }
    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }
    std::size_t size() const { return bytes_; }
    // Page-locks the memory. Throws std::bad_alloc where the system refuses.
    void lock();
    // The address for kernels of the current device. Valid after lock().
    const std::byte* on_device() const;

private:
    void swap(HostMemory& other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(locked_, other.locked_);
    }
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool locked_ = false;
};

}  // namespace pgwarp::cuda
