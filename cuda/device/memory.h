// Device memory: one pool a device, allocations named by purpose and held to a budget, freed by their owner.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace pgwarp::cuda
{

// Thread-safe. Allocations are ordered by stream (cudaMallocAsync); freed memory stays in the pool up to its threshold.
class MemoryPool
{
public:
    // budget in bytes; 0 = no limit of its own.
    MemoryPool(int device, std::uint64_t budget);
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    // `name` is a static string: the purpose ("exact vectors", "search workspace"). Throws std::bad_alloc past the
    // budget or the device's memory.
    void* allocate(std::size_t bytes, const char* name, cudaStream_t stream);
    void release(void* memory, std::size_t bytes, const char* name, cudaStream_t stream) noexcept;

    std::uint64_t used() const;
    std::uint64_t budget() const { return budget_; }
    std::map<std::string, std::uint64_t> used_by_name() const;
    // Gives freed memory back to the device.
    void trim();

private:
    const std::uint64_t budget_;
    cudaMemPool_t pool_ = nullptr;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    std::map<std::string, std::uint64_t> used_by_name_;
};

// An array in device memory. Contents are not initialised. Allocated and freed in the order of `stream`, which must
// outlive it; other streams that use it must be ordered after that (events), as usual.
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

namespace detail
{
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory) noexcept;
}  // namespace detail

template <class T>
class PinnedArray
{
public:
    PinnedArray() = default;
    explicit PinnedArray(std::size_t count)
        : data_(static_cast<T*>(detail::allocate_pinned(count * sizeof(T)))), count_(count)
    {
    }
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return count_; }
    std::span<T> span() { return {data_.get(), count_}; }

private:
    struct Free {
        void operator()(T* memory) const { detail::free_pinned(memory); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t count_ = 0;
};

}  // namespace pgwarp::cuda
