// Searches too big for an I/O thread: queued per index, answered by workers on the shared pool. While the device works
// on an index, arriving searches of that index collect into the next batch: no artificial wait.
//
// Fair in two ways. Indexes take turns: after a batch of one, every other waiting index comes first. And each index has
// two lanes: narrow requests, of few queries and short, don't wait for wide ones. Wide requests of several queries are
// cut into dispatches of some 20 ms, and one worker takes no wide ones.
//
// While processors are free, one worker without work at a time polls for a moment before it sleeps. A sleeping worker
// is woken when a lane becomes ready, not for each search: under many clients most searches come to a busy lane, and
// woken workers would find nothing to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/search/finished_batch.h"
#include "engine/search/queued_search.h"
#include "engine/server/busy_poll.h"

namespace pgwarp
{

class SearchQueue
{
public:
    // The first worker takes no wide requests.
    SearchQueue(std::size_t workers, ThreadPool& pool, BusyPoll& busy_poll);
    ~SearchQueue();

    // Queues a search, which is cancelled by leave() of the result.
    std::shared_ptr<QueuedCancel> submit(QueuedSearch&& search);
    // Returns when all queued searches are answered or cancelled.
    void stop();

private:
    // A lane of an index: at most one batch of it runs at a time.
    struct Lane {
        std::deque<WaitingSearch> waiting;
        bool busy = false;
        bool ready() const { return !busy && !waiting.empty(); }
    };
    struct IndexQueue {
        const Mirror* mirror;
        Lane narrow;
        Lane wide;
        bool idle() const { return !narrow.busy && !wide.busy && narrow.waiting.empty() && wide.waiting.empty(); }
    };
    using Queues = std::list<IndexQueue>;
    // Members, and the number of queries that each has in the batch.
    struct Batch {
        Queues::iterator queue;
        bool wide = false;
        std::vector<WaitingSearch> members;
        std::vector<std::size_t> shares;
        std::size_t queries = 0;
        double cost = 0;
        std::shared_ptr<BatchCancel> cancel = std::make_shared<BatchCancel>();

        Lane& lane() const { return wide ? queue->wide : queue->narrow; }
    };

    void work(bool narrow_only);
    bool take(bool narrow_only, Batch& batch);
    Queues::iterator find_ready(Lane IndexQueue::*lane);
    bool may_watch() const;
    void watch(std::unique_lock<std::mutex>& lock, bool narrow_only);
    bool leave_to_watcher(bool wide);
    bool others_may_work(bool narrow_only) const;
    void wake(bool wide);
    void fill(Batch& batch);
    void release(Batch& batch);
    void run(Batch& batch);
    static void give_out(Batch& batch, FinishedBatch& finished, Clock::duration dispatched);

    ThreadPool& pool_;
    BusyPoll& busy_poll_;
    std::mutex mutex_;
    std::condition_variable wake_;
    Queues queues_;  // indexes with searches, in the order of their turns
    bool stopping_ = false;
    TypicalWait idle_;  // from an empty queue to the next search
    Clock::time_point idle_since_{};
    std::thread::id watcher_;  // the polling worker, until a search is left to it; else no thread's id
    bool watcher_takes_wide_ = false;
    std::atomic<std::uint64_t> watcher_calls_{0};  // lanes left to watchers so far; each ends a poll
    std::vector<std::thread> workers_;
};

}  // namespace pgwarp
