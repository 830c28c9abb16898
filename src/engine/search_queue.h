// Searches too big for an I/O thread: queued per index and setting, answered by workers on the shared pool. While the
// device works on an index, what arrives for it collects into the next batch: no artificial wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/error.h"
#include "engine/search.h"

namespace pgwarp
{

// The cancel token of a batch: it is cancelled when all of its members gave up.
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

// One member's part of a batch's answer.
struct SearchSlice {
    std::span<const std::uint32_t> counts;
    std::span<const Result> results;
    std::span<const std::uint64_t> places;
    std::uint32_t batch_width;  // queries in the batch
    Clock::time_point started;
    const SearchAnswer& answer;
};

// A search that waits. Exactly one of the callbacks is called, on a worker; it hands the news to the connection's
// thread.
struct QueuedSearch {
    SearchSettings settings;
    std::vector<float> queries;
    std::size_t count = 0;
    std::function<void(const SearchSlice&)> answered;
    std::function<void(const ErrorReply&)> failed;
};

// Calls give(member, slice) with each member's part of a batch's answer.
template <class Member, class Give>
void deliver(std::vector<Member>& members, const SearchAnswer& answer, std::uint32_t batch_width,
             Clock::time_point started, Give&& give)
{
    std::size_t query = 0;
    std::size_t result = 0;
    for (Member& member : members) {
        const auto counts = std::span(answer.counts).subspan(query, member.count);
        std::size_t results = 0;
        for (std::uint32_t count : counts) results += count;
        give(member, SearchSlice{counts, std::span(answer.results).subspan(result, results),
                                 std::span(answer.places).subspan(result, results), batch_width, started, answer});
        query += member.count;
        result += results;
    }
}

class SearchQueue
{
public:
    SearchQueue(std::size_t workers, ThreadPool& pool);
    ~SearchQueue();

    // Queues a search; the token's leave() says that its sender is gone.
    std::shared_ptr<BatchCancel> submit(QueuedSearch&& search);
    // Stops after what is queued was answered or cancelled.
    void stop();

private:
    struct Batch {
        std::vector<QueuedSearch> members;
        std::size_t queries = 0;
        std::shared_ptr<BatchCancel> cancel = std::make_shared<BatchCancel>();
    };
    void work();
    bool take(Batch& batch);
    void run(Batch& batch);

    ThreadPool& pool_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Batch> waiting_;
    std::vector<const Mirror*> busy_;  // at most one batch of an index at a time
    bool stopping_ = false;
    std::vector<std::thread> workers_;
};

}  // namespace pgwarp
