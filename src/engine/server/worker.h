// A queue of tasks and the threads that run them.
#pragma once

#include <sys/resource.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pgwarp
{

class Worker
{
public:
    // nice: the nice value of the threads.
    explicit Worker(std::size_t threads, int nice = 0)
    {
        for (std::size_t i = 0; i < threads; ++i) {
            threads_.emplace_back([this, nice] {
                if (nice != 0) ::setpriority(PRIO_PROCESS, 0, nice);
                work();
            });
        }
    }
    ~Worker() { stop(); }

    // Tasks must not throw.
    void post(std::function<void()> task)
    {
        {
            std::lock_guard lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        wake_.notify_one();
    }

    // Returns when all posted tasks are done.
    void stop()
    {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) {
            if (thread.joinable()) thread.join();
        }
    }

private:
    void work()
    {
        std::unique_lock lock(mutex_);
        while (true) {
            wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            task = nullptr;
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace pgwarp
