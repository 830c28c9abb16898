// Data-parallel loops: callers queue jobs that live on their stacks; idle threads join the first job with pieces left.
// A waiting thread spins for a moment and then sleeps, because waking a thread often takes longer than a piece.
#include "numeric/parallel.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "numeric/processors.h"

namespace pgwarp
{

namespace
{

constexpr std::chrono::microseconds spin_time{20};

// Spin until ready() or until spin_time is over; return the last value of ready().
template <class Ready>
bool spin(Ready ready)
{
    if (ready()) return true;
    const auto end = std::chrono::steady_clock::now() + spin_time;
    do {
        for (int i = 0; i < 32; ++i) {
            if (ready()) return true;
            hwy::Pause();
        }
    } while (std::chrono::steady_clock::now() < end);
    return ready();
}

// One parallel_for. It lives on its caller's stack, so a helper must not access it after leaving.
struct Job {
    const std::function<void(std::size_t, std::size_t)>& body;
    const std::size_t count;
    const std::size_t grain;
    std::atomic<std::size_t> next{0};     // first piece not yet taken
    std::atomic<std::size_t> helpers{0};  // pool threads inside; enters under the pool's mutex
    std::atomic<bool> failed{false};
    std::exception_ptr error{};  // written by the thread that set `failed`

    bool has_pieces() const { return next.load(std::memory_order_relaxed) < count; }

    // Number of pieces not yet taken, less the one that the calling thread is about to take.
    std::size_t spare_pieces() const
    {
        const std::size_t begin = next.load(std::memory_order_relaxed);
        return begin < count ? (count - begin - 1) / grain : 0;
    }

    // Take a piece; false when none is left.
    bool take(std::size_t& begin, std::size_t& end)
    {
        begin = next.load(std::memory_order_relaxed);
        do {
            if (begin >= count) return false;
            end = count - begin > grain ? begin + grain : count;
        } while (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
        return true;
    }

    // Run pieces until none is left; after an exception the rest is skipped.
    void run()
    {
        std::size_t begin = 0;
        std::size_t end = 0;
        while (take(begin, end)) {
            try {
                body(begin, end);
            } catch (...) {
                next.store(count, std::memory_order_relaxed);
                if (!failed.exchange(true)) error = std::current_exception();
            }
        }
    }
};

thread_local bool inside_parallel_for = false;

// Mark the thread as inside a loop, so that nested loops run on it alone.
class InsideScope
{
public:
    InsideScope() { inside_parallel_for = true; }
    ~InsideScope() { inside_parallel_for = false; }
    InsideScope(const InsideScope&) = delete;
    InsideScope& operator=(const InsideScope&) = delete;
};

}  // namespace

struct ThreadPool::State {
    std::mutex mutex;
    std::condition_variable wake;    // for idle threads
    std::condition_variable finish;  // for callers whose helpers are still inside
    std::deque<Job*> jobs;           // those that may have pieces left
    std::size_t sleeping = 0;        // idle threads in `wake`
    std::size_t finishing = 0;       // callers in `finish`
    bool stopping = false;
    std::atomic<std::size_t> posted{0};  // counts jobs, for idle threads that spin
    std::vector<std::thread> threads;

    ~State()
    {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
            posted.fetch_add(1, std::memory_order_relaxed);
        }
        wake.notify_all();
        for (std::thread& thread : threads) thread.join();
    }

    // Wake up to two sleepers; each wakes two more when it enters: a long loop wakes all quickly, a short one wakes
    // few.
    void wake_helpers(const Job& job)
    {
        constexpr std::size_t at_once = 2;
        const std::size_t useful = std::min({at_once, sleeping, job.spare_pieces()});
        for (std::size_t i = 0; i < useful; ++i) wake.notify_one();
    }

    // Enter the first job with pieces left; null when there is none. The caller holds the mutex.
    Job* enter_job()
    {
        while (!jobs.empty() && !jobs.front()->has_pieces()) jobs.pop_front();
        if (jobs.empty()) return nullptr;
        jobs.front()->helpers.fetch_add(1, std::memory_order_relaxed);
        return jobs.front();
    }

    // Wait for a job and enter it; null when stopping.
    Job* next_job()
    {
        bool spun = false;
        for (;;) {
            std::size_t seen = 0;
            {
                std::unique_lock lock(mutex);
                for (;;) {
                    if (Job* job = enter_job()) {
                        wake_helpers(*job);
                        return job;
                    }
                    if (stopping) return nullptr;
                    if (!spun) break;
                    ++sleeping;
                    wake.wait(lock);
                    --sleeping;
                }
                seen = posted.load(std::memory_order_relaxed);
            }
            spun = !spin([&] { return posted.load(std::memory_order_relaxed) != seen; });
        }
    }

    // Leave a job. Its caller may return once the counter is zero, so only the pool's members are accessed after that.
    void leave(Job& job)
    {
        if (job.helpers.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        const std::lock_guard lock(mutex);
        if (finishing > 0) finish.notify_all();
    }

    void work()
    {
        const InsideScope scope;
        while (Job* job = next_job()) {
            job->run();
            leave(*job);
        }
    }

    void post(Job& job)
    {
        const std::lock_guard lock(mutex);
        jobs.push_back(&job);
        posted.fetch_add(1, std::memory_order_relaxed);
        wake_helpers(job);
    }

    // Remove the job from the queue, so that no thread enters it any more, and wait for the threads inside.
    void withdraw(Job& job)
    {
        {
            const std::lock_guard lock(mutex);
            std::erase(jobs, &job);
        }
        const auto left = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
        if (spin(left)) return;
        std::unique_lock lock(mutex);
        ++finishing;
        finish.wait(lock, left);
        --finishing;
    }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>())
{
    if (threads == 0) threads = usable_processors();
    for (std::size_t i = 1; i < threads; ++i) {
        state_->threads.emplace_back([state = state_.get()] { state->work(); });
    }
}

ThreadPool::~ThreadPool() = default;

std::size_t ThreadPool::threads() const
{
    return state_->threads.size() + 1;
}

void ThreadPool::parallel_for(std::size_t count, std::size_t grain,
                              const std::function<void(std::size_t, std::size_t)>& body)
{
    grain = std::max<std::size_t>(grain, 1);
    if (inside_parallel_for || state_->threads.empty() || count <= grain) {
        for (std::size_t begin = 0; begin < count;) {
            const std::size_t end = count - begin > grain ? begin + grain : count;
            body(begin, end);
            begin = end;
        }
        return;
    }
    Job job{body, count, grain};
    state_->post(job);
    {
        const InsideScope scope;
        job.run();
    }
    state_->withdraw(job);
    if (job.error) std::rethrow_exception(job.error);
}

ThreadPool& caller_alone()
{
    static ThreadPool alone(1);
    return alone;
}

}  // namespace pgwarp
