// Work that the first of several threads does for all of them.
#pragma once

#include <atomic>
#include <mutex>

namespace pgwarp
{

// As std::call_once(): where the work throws, the caller gets the exception and the next caller does the work again.
// std::call_once() itself does not return from that under ThreadSanitizer, nor with every C library.
class Once
{
public:
    // Returns when the work is done. Thread-safe.
    template <class Work>
    void run(const Work& work)
    {
        if (done_.load(std::memory_order_acquire)) return;
        const std::lock_guard lock(mutex_);
        if (done_.load(std::memory_order_relaxed)) return;
        work();
        done_.store(true, std::memory_order_release);
    }

private:
    std::mutex mutex_;
    std::atomic<bool> done_{false};
};

}  // namespace pgwarp
