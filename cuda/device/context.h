// One device: its properties, memory pool and streams. The module makes one Context for each device when it opens.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/idle_pool.h"
#include "device/memory.h"

namespace pgwarp::cuda
{

enum class Priority { search, build };  // a build's launches wait for those of searches

class Stream
{
public:
    Stream(int device, Priority priority);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    cudaStream_t get() const { return stream_; }
    // Waits. The thread sleeps during long work.
    void synchronize() const;

private:
    cudaStream_t stream_ = nullptr;
};

class Context
{
public:
    // Makes the device's primary context current. budget: bytes of device memory; 0 = a share of the free memory.
    Context(int device, std::uint64_t budget);
    ~Context();

    int device() const { return device_; }
    int multiprocessors() const { return properties_.multiProcessorCount; }
    bool has_warp_group_matrix() const { return properties_.major == 9; }
    // Shared memory that kernels may ask for: 64 KB on sm_75, 99 KB on sm_86 and sm_89, 227 KB on sm_90.
    std::size_t shared_bytes_per_block() const { return std::min(shared_limit_, properties_.sharedMemPerBlockOptin); }
    // For tests: kernels get the shared memory of a smaller device.
    void limit_shared_bytes(std::size_t bytes) { shared_limit_ = bytes; }
    std::string name() const { return properties_.name; }
    MemoryPool& pool() { return *pool_; }
    const MemoryPool& pool() const { return *pool_; }
    std::uint32_t builds() const { return builds_.load(std::memory_order_relaxed); }

    // Counts a build as under way on this device for the life of the object. Streams that its thread leases meanwhile
    // have the priority of builds: the searches that calibrate the index must not delay those of clients.
    class Build
    {
    public:
        explicit Build(Context& context);
        ~Build();
        Build(const Build&) = delete;
        Build& operator=(const Build&) = delete;

    private:
        Context* context_;
        BuildAllocations allocations_;
    };

    // A stream that no other thread uses until the lease ends. Binds the calling thread to the device.
    class Lease
    {
    public:
        Lease(Context& context, Priority priority, std::unique_ptr<Stream> stream)
            : context_(&context), priority_(priority), stream_(std::move(stream))
        {
        }
        Lease(Lease&&) = default;
        ~Lease();
        operator cudaStream_t() const { return stream_->get(); }
        const Stream& stream() const { return *stream_; }

    private:
        Context* context_;
        Priority priority_;
        std::unique_ptr<Stream> stream_;
    };
    Lease lease(Priority priority);

private:
    const int device_;
    cudaDeviceProp properties_{};
    std::size_t shared_limit_ = SIZE_MAX;
    std::unique_ptr<MemoryPool> pool_;
    std::atomic<std::uint32_t> builds_{0};
    IdlePool<Stream> idle_[2];
};

// Throws when the kernels were not compiled for the device.
void check_architecture(Context& context);

// The module's devices, in the order named. Set by the module's open(), before any method is asked for.
std::vector<std::unique_ptr<Context>>& contexts();

// The device with the most free memory: an index is loaded there as a whole.
Context& roomiest(std::span<const std::unique_ptr<Context>> among);
// The device for a build: the one with the fewest builds and, among equals, the most free memory.
Context& least_busy(std::span<const std::unique_ptr<Context>> among);

}  // namespace pgwarp::cuda
