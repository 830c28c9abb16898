// A queued search, its cancel token and the answers of a request.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/search/search.h"
#include "engine/server/error.h"
#include "engine/server/mailbox.h"
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

// A queued search. Exactly one of the callbacks is called, on the thread of the mailbox. They throw only before the
// answer has gone.
struct QueuedSearch {
    SearchSettings settings;
    OwnedRows queries;
    QueryPredicates predicates;
    std::size_t count = 0;
    double query_cost = 0;       // by estimate_cost()
    Mailbox* mailbox = nullptr;  // outlives the search
    std::function<void(const SearchSettings&, const SearchSlice&)> answered;
    std::function<void(const SearchSettings&, const ErrorReply&)> failed;
};
// Has the search's failed() called.
void post_failure(QueuedSearch&& search, const ErrorReply& error);

// A search between its batches.
struct WaitingSearch {
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
    // Takes in its part of a batch's answer.
    void note(const SearchSlice& part);
    // Keeps the results of the part, which is not the whole answer.
    void keep(const SearchSlice& part);
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

}  // namespace pgwarp
