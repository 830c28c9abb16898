// Pinned buffers that are kept for the next request: pinning memory costs more than most searches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/memory.h"

namespace pgwarp::cuda
{

// Thread-safe.
class StagingPool
{
public:
    using Buffer = PinnedArray<std::byte>;

    // A buffer of one's own until the lease goes.
    class Lease
    {
    public:
        Lease(StagingPool& pool, Buffer buffer) : pool_(&pool), buffer_(std::move(buffer)) {}
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease() { pool_->give_back(std::move(buffer_)); }
        std::byte* data() { return buffer_.data(); }

    private:
        StagingPool* pool_;
        Buffer buffer_;
    };

    Lease lease(std::size_t bytes)
    {
        {
            const std::lock_guard lock(mutex_);
            for (auto& buffer : idle_) {
                if (buffer.size() < bytes) continue;
                std::swap(buffer, idle_.back());
                Buffer taken = std::move(idle_.back());
                idle_.pop_back();
                return {*this, std::move(taken)};
            }
        }
        return {*this, Buffer(std::max(bytes, smallest))};
    }

    void drop_idle()
    {
        std::vector<Buffer> dropped;
        const std::lock_guard lock(mutex_);
        dropped.swap(idle_);
    }

private:
    static constexpr std::size_t smallest = std::size_t{1} << 20;
    static constexpr std::size_t most_idle = 8;

    void give_back(Buffer buffer)
    {
        const std::lock_guard lock(mutex_);
        // A small one makes room for a larger one.
        if (idle_.size() == most_idle) idle_.erase(idle_.begin());
        idle_.push_back(std::move(buffer));
    }

    std::mutex mutex_;
    std::vector<Buffer> idle_;
};

}  // namespace pgwarp::cuda
