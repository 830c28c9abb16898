// What searches of a graph keep between them: streams with their memory.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/context.h"
#include "device/error.h"

namespace pgwarp::cuda::graph
{

// What one search at a time uses: a stream, device memory and page-locked memory.
class Workspace
{
public:
    explicit Workspace(Context& context) : lease(context.lease(Priority::search)), pool_(&context.pool()) {}

    std::byte* device(std::size_t bytes)
    {
        if (memory_.size() < bytes) {
            memory_ = {};
            memory_ = DeviceArray<std::byte>(*pool_, bytes, "graph workspace", lease);
        }
        return memory_.data();
    }
    std::byte* pinned(std::size_t bytes)
    {
        if (host_.size() < bytes) {
            host_ = {};
            host_ = PinnedArray<std::byte>(bytes);
        }
        return host_.data();
    }
    std::size_t device_bytes() const { return memory_.bytes(); }
    void drop_device() { memory_ = {}; }
    // Large memory goes back to the pool.
    void shrink()
    {
        constexpr std::size_t kept = std::size_t{64} << 20;
        if (memory_.size() > kept) memory_ = {};
        if (host_.size() > kept) host_ = {};
    }

    Context::Lease lease;

private:
    MemoryPool* pool_;
    DeviceArray<std::byte> memory_;
    PinnedArray<std::byte> host_;
};

// Workspaces that lie idle, kept for the next search. Thread-safe.
class Workspaces
{
public:
    std::unique_ptr<Workspace> take(Context& context)
    {
        check(cudaSetDevice(context.device()), "choosing the device");
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                auto workspace = std::move(idle_.back());
                idle_.pop_back();
                return workspace;
            }
        }
        return std::make_unique<Workspace>(context);
    }
    void put_back(std::unique_ptr<Workspace> workspace)
    {
        workspace->shrink();
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(workspace));
    }
    void drop_idle()
    {
        std::vector<std::unique_ptr<Workspace>> dropped;
        const std::lock_guard lock(mutex_);
        dropped.swap(idle_);
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace pgwarp::cuda::graph
