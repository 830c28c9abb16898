#include "engine/search/queued_search.h"

#include <algorithm>

namespace pgwarp
{

void QueuedCancel::leave()
{
    std::lock_guard lock(mutex_);
    if (left_) return;
    left_ = true;
    if (batch_) batch_->leave();
}

bool QueuedCancel::left() const
{
    std::lock_guard lock(mutex_);
    return left_;
}

bool QueuedCancel::enter(std::shared_ptr<BatchCancel> batch)
{
    std::lock_guard lock(mutex_);
    if (left_) return false;
    batch->join();
    batch_ = std::move(batch);
    return true;
}

void QueuedCancel::exit()
{
    std::lock_guard lock(mutex_);
    batch_.reset();
}

void post_failure(QueuedSearch&& search, const ErrorReply& error)
{
    Mailbox* const mailbox = search.mailbox;
    const auto failed = std::make_shared<QueuedSearch>(std::move(search));
    mailbox->post([failed, error] { failed->failed(failed->settings, error); });
}

void WaitingSearch::note(const SearchSlice& part)
{
    cancel->exit();
    dispatched += part.dispatched;
    batch_width = std::max(batch_width, part.batch_width);
    bound_width = std::max(bound_width, part.bound_width);
    filtered.add(part.filtered);
}

void WaitingSearch::keep(const SearchSlice& part)
{
    counts.insert(counts.end(), part.counts.begin(), part.counts.end());
    results.insert(results.end(), part.results.begin(), part.results.end());
    if (search.settings.want_places) places.insert(places.end(), part.places.begin(), part.places.end());
    done += part.counts.size();
}

}  // namespace pgwarp
