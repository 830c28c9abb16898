// What searches of a graph keep between them: streams with their memory, and the tombstones as the device has them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/context.h"
#include "device/error.h"
#include "index/index.h"

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

// Tombstones as the last search had them: they seldom change from one search to the next. Thread-safe.
class Tombstones
{
public:
    // Bit i of words: row i. To be kept while kernels read it.
    struct Entry {
        std::vector<std::uint64_t> given;
        DeviceArray<std::uint64_t> bits;
        double share = 0;  // of all rows
        const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(bits.data()); }
    };
    using Use = std::shared_ptr<const Entry>;

    // stream: of the mirror, outlives what is kept. Null where none is dead.
    Use of(RowBitmap dead, std::size_t rows, MemoryPool& pool, const Context::Lease& stream)
    {
        if (dead.empty() || rows == 0) return nullptr;
        // Rows beyond the bitmap are alive: the device's has a bit for each.
        const std::size_t words = std::min(dead.size(), (rows + 63) / 64);
        const std::lock_guard lock(mutex_);
        if (entry_ != nullptr &&
            std::equal(entry_->given.begin(), entry_->given.begin() + static_cast<std::ptrdiff_t>(words),
                       dead.begin()) &&
            entry_->given.size() == (rows + 63) / 64 &&
            std::all_of(entry_->given.begin() + static_cast<std::ptrdiff_t>(words), entry_->given.end(),
                        [](std::uint64_t word) { return word == 0; })) {
            return entry_;
        }
        auto made = std::make_shared<Entry>();
        made->given.assign((rows + 63) / 64, 0);
        std::copy_n(dead.begin(), words, made->given.begin());
        std::size_t count = 0;
        for (const std::uint64_t word : made->given) count += static_cast<std::size_t>(std::popcount(word));
        made->share = static_cast<double>(count) / static_cast<double>(rows);
        made->bits = DeviceArray<std::uint64_t>(pool, made->given.size(), "graph dead rows", stream);
        check(
            cudaMemcpyAsync(made->bits.data(), made->given.data(), made->bits.bytes(), cudaMemcpyHostToDevice, stream),
            "copying dead rows");
        stream.stream().synchronize();
        entry_ = made;
        return made;
    }

private:
    std::mutex mutex_;
    std::shared_ptr<const Entry> entry_;
};

}  // namespace pgwarp::cuda::graph
