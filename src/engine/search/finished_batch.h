// The answers of a batch on their way to the threads of their connections. The worker that searched hands each thread
// one task, whatever the number of its searches, and goes on with the next batch: the threads write the replies.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/search/queued_search.h"

namespace pgwarp
{

class FinishedBatch
{
public:
    SearchAnswer answer;

    // Whether it can take another batch: all answers have been given. Thread-safe.
    bool is_free() const { return free_.load(std::memory_order_acquire); }
    // Adds a search that is answered whole. part: the answer where it lies in `answer`, null where the search has kept
    // its parts. Call while it is free, up to send().
    void add(WaitingSearch&& search, const SearchSlice* part);
    // Has answered() of the added searches called, and failed() of one whose answered() throws.
    static void send(const std::shared_ptr<FinishedBatch>& batch);

private:
    struct Member {
        WaitingSearch waiting;
        std::span<const std::uint32_t> counts;
        std::span<const Result> results;
        std::span<const std::uint64_t> places;
    };
    void give(const Mailbox& mailbox);
    void give(const Member& member) const;
    void clear();

    std::vector<Member> members_;
    std::atomic<std::size_t> open_{0};  // mailboxes whose answers have not been given
    std::atomic<bool> free_{true};
};

}  // namespace pgwarp
