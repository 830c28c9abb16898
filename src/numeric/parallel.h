// A fixed pool of threads for data-parallel loops, with cancellation.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>

namespace pgwarp
{

// Thrown inside the engine when the request for the work was cancelled or its client disconnected.
struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("cancelled") {}
};

// A flag shared by the connection that may cancel and the work that polls it (between chunks of at most a few ms).
class CancelToken
{
public:
    void cancel() { flag_.store(true, std::memory_order_relaxed); }
    bool cancelled() const { return flag_.load(std::memory_order_relaxed); }
    void check() const
    {
        if (cancelled()) throw Cancelled();
    }

private:
    std::atomic<bool> flag_{false};
};

// The threads start with the object and end with it.
class ThreadPool
{
public:
    explicit ThreadPool(std::size_t threads);  // 0 = usable_processors(); 1 = all loops run on the caller's thread
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::size_t threads() const;

    // Runs body(begin, end) over [0, count) in pieces of `grain`; the caller takes part and returns when all pieces are
    // done. Pieces start in order. The first exception is rethrown. Nested calls run on the caller's thread alone, but
    // for those in a loop of one piece, which the threads share: a body may never count on running alone. Safe to call
    // from several threads at once.
    void parallel_for(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);

private:
    struct State;
    std::unique_ptr<State> state_;
};

// A pool of one thread, for loops that are shorter than waking a thread.
ThreadPool& caller_alone();

// Number of items of item_bytes in a piece: large enough that distributing pieces costs next to nothing.
constexpr std::size_t items_at_a_time(std::size_t item_bytes)
{
    constexpr std::size_t bytes = std::size_t{128} << 10;
    return std::max<std::size_t>(1, bytes / item_bytes);
}

}  // namespace pgwarp
