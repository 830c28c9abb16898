#include "engine/search/finished_batch.h"

#include <algorithm>

namespace pgwarp
{

void FinishedBatch::add(WaitingSearch&& search, const SearchSlice* part)
{
    Member& member = members_.emplace_back();
    member.waiting = std::move(search);
    if (part != nullptr) {
        member.counts = part->counts;
        member.results = part->results;
        member.places = part->places;
    } else {
        member.counts = member.waiting.counts;
        member.results = member.waiting.results;
        member.places = member.waiting.places;
    }
}

void FinishedBatch::send(const std::shared_ptr<FinishedBatch>& batch)
{
    std::vector<Mailbox*> mailboxes;
    for (const Member& member : batch->members_) {
        Mailbox* const mailbox = member.waiting.search.mailbox;
        if (std::find(mailboxes.begin(), mailboxes.end(), mailbox) == mailboxes.end()) mailboxes.push_back(mailbox);
    }
    if (mailboxes.empty()) return batch->clear();
    batch->free_.store(false, std::memory_order_relaxed);
    batch->open_.store(mailboxes.size(), std::memory_order_relaxed);
    for (Mailbox* const mailbox : mailboxes) mailbox->post([batch, mailbox] { batch->give(*mailbox); });
}

void FinishedBatch::give(const Mailbox& mailbox)
{
    for (const Member& member : members_) {
        if (member.waiting.search.mailbox == &mailbox) give(member);
    }
    if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    clear();
    free_.store(true, std::memory_order_release);
}

void FinishedBatch::give(const Member& member) const
{
    const WaitingSearch& waiting = member.waiting;
    const QueuedSearch& search = waiting.search;
    try {
        search.answered(search.settings, {member.counts, member.results, member.places, waiting.batch_width,
                                          waiting.dispatched, waiting.bound_width, waiting.filtered, answer});
    } catch (...) {
        search.failed(search.settings, describe_exception());
    }
}

// Releases the mirrors and connections of the searches.
void FinishedBatch::clear()
{
    members_.clear();
    answer.snapshot.reset();
}

}  // namespace pgwarp
