// A pool of idle objects that are costly to make, such as streams and page-locked memory.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace pgwarp::cuda
{

// Thread-safe.
template <class T>
class IdlePool
{
public:
    // Returns null where no object is idle.
    std::unique_ptr<T> take()
    {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return nullptr;
        std::unique_ptr<T> taken = std::move(idle_.back());
        idle_.pop_back();
        return taken;
    }
    // Frees the object where memory is too short to keep it.
    void put_back(std::unique_ptr<T> idle) noexcept
    {
        try {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(idle));
        } catch (const std::bad_alloc&) {
        }
    }
    // Frees the idle objects.
    void drop()
    {
        std::vector<std::unique_ptr<T>> dropped;  // freed without the lock
        const std::lock_guard lock(mutex_);
        dropped.swap(idle_);
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace pgwarp::cuda
