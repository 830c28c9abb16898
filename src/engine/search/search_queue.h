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
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/search/search.h"
#include "engine/server/busy_poll.h"
#include "engine/server/error.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp
{

// The cancel token of a batch: cancelled when all of its members have left.
class BatchCancel
{
public:
    void join() { members_.fetch_add(1); }
    void leave()
    {
        if (members_.fetch_sub(1) == 1) token_.cancel();
    }
    const CancelToken& token() const { return token_; }

private:
    std::atomic<int> members_{0};
    CancelToken token_;
};

// Cancels a queued search: before, between and during its batches.
class QueuedCancel
{
public:
    void leave();
    bool left() const;
    // Called by the queue. enter() makes the search a member of a batch; false when it has left. exit() ends the batch.
    bool enter(std::shared_ptr<BatchCancel> batch);
    void exit();

private:
    mutable std::mutex mutex_;
    std::shared_ptr<BatchCancel> batch_;
    bool left_ = false;
};

// One member's answer.
struct SearchSlice {
    std::span<const std::uint32_t> counts;
    std::span<const Result> results;
    std::span<const std::uint64_t> places;
    std::uint32_t batch_width;   // queries in the widest of its batches
    Clock::duration dispatched;  // time in its batches
    double bound_width;
    FilterOutcome filtered;
    const SearchAnswer& answer;  // of its last batch
};

// A queued search. Exactly one of the callbacks is called, on a worker; it posts to the I/O thread of the connection.
struct QueuedSearch {
    SearchSettings settings;
    OwnedRows queries;
    QueryPredicates predicates;
    std::size_t count = 0;
    double query_cost = 0;  // by estimate_cost()
    std::function<void(const SearchSlice&)> answered;
    std::function<void(const ErrorReply&)> failed;
};

// Calls give(member, slice) with each member's part of a batch's answer.
template <class Member, class Give>
void deliver(std::vector<Member>& members, const SearchAnswer& answer, std::uint32_t batch_width,
             Clock::duration dispatched, Give&& give)
{
    std::size_t query = 0;
    std::size_t result = 0;
    for (Member& member : members) {
        const auto counts = std::span(answer.counts).subspan(query, member.count);
        std::size_t results = 0;
        for (std::uint32_t count : counts) results += count;
        give(member, SearchSlice{counts, std::span(answer.results).subspan(result, results),
                                 std::span(answer.places).subspan(result, results), batch_width, dispatched,
                                 answer.bound_width, filtered_of(answer, query, member.count), answer});
        query += member.count;
        result += results;
    }
}

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
    // A search between its batches.
    struct Waiting {
        QueuedSearch search;
        std::shared_ptr<QueuedCancel> cancel;
        std::size_t done = 0;  // queries answered; their results follow
        std::vector<std::uint32_t> counts;
        std::vector<Result> results;
        std::vector<std::uint64_t> places;
        double bound_width = 0;
        FilterOutcome filtered;
        std::uint32_t batch_width = 0;
        Clock::duration dispatched{};

        std::size_t left() const { return search.count - done; }
    };
    // A lane of an index: at most one batch of it runs at a time.
    struct Lane {
        std::deque<Waiting> waiting;
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
        std::vector<Waiting> members;
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
    static void give_out(Batch& batch, const SearchAnswer& answer, Clock::duration dispatched);

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
    std::atomic<std::uint64_t> watcher_calls_{0};  // searches left to watchers so far; each ends a poll
    std::vector<std::thread> workers_;
};

}  // namespace pgwarp
