// A thread that runs a task at an interval until it is destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace pgwarp
{

class Periodic
{
public:
    // task: must not throw. Its first run comes after one interval.
    Periodic(std::chrono::milliseconds interval, std::function<void()> task)
        : thread_([this, interval, task = std::move(task)] {
              std::unique_lock lock(mutex_);
              while (!wake_.wait_for(lock, interval, [this] { return stopping_; })) {
                  lock.unlock();
                  task();
                  lock.lock();
              }
          })
    {
    }
    ~Periodic() { stop(); }
    Periodic(const Periodic&) = delete;
    Periodic& operator=(const Periodic&) = delete;

    // Returns when the task has ended for good.
    void stop()
    {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        if (thread_.joinable()) thread_.join();
    }

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace pgwarp
