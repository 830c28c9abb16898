#include "cluster/staging.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "device/error.h"
#include "device/event.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

// More threads copy faster, but take cores and memory bandwidth from searches: with all 16 cores of a machine copying,
// a search took twice as long, although the device had time for it.
constexpr std::size_t copying_threads = 4;
constexpr std::size_t copy_grain = Staging::slot_bytes / copying_threads;

void copy_parallel(void* target, const void* source, std::size_t bytes, ThreadPool& pool)
{
    pool.parallel_for(bytes, copy_grain, [&](std::size_t begin, std::size_t end) {
        std::memcpy(static_cast<std::byte*>(target) + begin, static_cast<const std::byte*>(source) + begin,
                    end - begin);
    });
}

// Calls copy(), and where it throws waits for the copies that it began.
template <class Copy>
void finish_copies(cudaStream_t stream, const Copy& copy)
{
    try {
        copy();
    } catch (...) {
        drain(stream);
        throw;
    }
}

}  // namespace

struct Staging::Ring {
    PinnedArray<std::byte> memory{slots * slot_bytes};
    Event done[slots];
    std::size_t next = 0;
    int device = 0;  // its events can be recorded in streams of this device only

    explicit Ring(int of) : device(of) {}
    std::byte* slot(std::size_t at) { return memory.data() + at * slot_bytes; }
    void wait(std::size_t at) { done[at].wait("waiting for a copy"); }

    static std::mutex& mutex()
    {
        static std::mutex one;
        return one;
    }
    // Never destroyed, because static objects may outlive the driver.
    static std::vector<std::unique_ptr<Ring>>& idle()
    {
        static auto* rings = new std::vector<std::unique_ptr<Ring>>();
        return *rings;
    }
};

Staging::Staging(cudaStream_t stream) : stream_(stream)
{
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    {
        const std::lock_guard lock(Ring::mutex());
        auto& idle = Ring::idle();
        const auto found = std::ranges::find_if(idle, [device](const auto& ring) { return ring->device == device; });
        if (found != idle.end()) {
            ring_ = std::move(*found);
            idle.erase(found);
            return;
        }
    }
    ring_ = std::make_unique<Ring>(device);
}

Staging::~Staging()
{
    drain(stream_);
    constexpr std::size_t most_idle = 4;
    const std::lock_guard lock(Ring::mutex());
    if (Ring::idle().size() < most_idle) Ring::idle().push_back(std::move(ring_));
}

void Staging::upload(const void* host, std::size_t bytes, void* device, ThreadPool& pool, const CancelToken* cancel)
{
    finish_copies(stream_, [&] {
        for (std::size_t offset = 0; offset < bytes; offset += slot_bytes) {
            if (cancel != nullptr) cancel->check();
            const std::size_t here = std::min(slot_bytes, bytes - offset);
            const std::size_t at = ring_->next++ % slots;
            ring_->wait(at);
            copy_parallel(ring_->slot(at), static_cast<const std::byte*>(host) + offset, here, pool);
            check(cudaMemcpyAsync(static_cast<std::byte*>(device) + offset, ring_->slot(at), here,
                                  cudaMemcpyHostToDevice, stream_),
                  "copying rows to the device");
            ring_->done[at].record(stream_);
        }
    });
}

void Staging::download(const void* device, std::size_t bytes, void* host, ThreadPool& pool, const CancelToken* cancel)
{
    const auto request = [&](std::size_t offset) {
        const std::size_t at = offset / slot_bytes % slots;
        check(cudaMemcpyAsync(ring_->slot(at), static_cast<const std::byte*>(device) + offset,
                              std::min(slot_bytes, bytes - offset), cudaMemcpyDeviceToHost, stream_),
              "copying from the device");
        ring_->done[at].record(stream_);
    };
    finish_copies(stream_, [&] {
        for (std::size_t offset = 0; offset < std::min(bytes, slots * slot_bytes); offset += slot_bytes)
            request(offset);
        for (std::size_t offset = 0; offset < bytes; offset += slot_bytes) {
            if (cancel != nullptr) cancel->check();
            const std::size_t at = offset / slot_bytes % slots;
            ring_->wait(at);
            copy_parallel(static_cast<std::byte*>(host) + offset, ring_->slot(at), std::min(slot_bytes, bytes - offset),
                          pool);
            if (offset + slots * slot_bytes < bytes) request(offset + slots * slot_bytes);
        }
    });
}

}  // namespace pgwarp::cuda
