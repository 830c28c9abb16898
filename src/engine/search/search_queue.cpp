// The workers of the search queue: they fill batches, run them, and give their answers out.
#include "engine/search/search_queue.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr std::size_t most_narrow_queries = 16;  // of a narrow request
constexpr double most_narrow_ns = 20e6;          // of a narrow request, as expected
constexpr double result_ns = 20;                 // of one result, which matters for large k
constexpr std::size_t max_batch_queries = 4096;
constexpr std::uint64_t max_batch_bytes = std::uint64_t{64} << 20;  // of results

// A long search is wide whatever its number of queries: others would wait for it as for many.
bool is_wide(const QueuedSearch& search)
{
    if (search.count > most_narrow_queries) return true;
    const auto count = static_cast<double>(search.count);
    const double results_ns = count * search.settings.k * result_ns;
    return search.settings.mirror->expected_ns(count * search.query_cost) + results_ns > most_narrow_ns;
}

// The queries of all members, one after the other.
template <class Members>
void collect_queries(const Members& members, const std::vector<std::size_t>& shares, OwnedRows& queries,
                     QueryPredicates& predicates)
{
    queries.clear();
    predicates.clear();
    for (std::size_t i = 0; i < members.size(); ++i) {
        queries.append(members[i].search.queries.view().slice(members[i].done, shares[i]));
        predicates.append(members[i].search.predicates, members[i].done, shares[i]);
    }
}

}  // namespace

SearchQueue::SearchQueue(std::size_t workers, ThreadPool& pool, BusyPoll& busy_poll)
    : pool_(pool), busy_poll_(busy_poll)
{
    for (std::size_t i = 0; i < workers; ++i) workers_.emplace_back([this, i] { work(i == 0); });
}

SearchQueue::~SearchQueue()
{
    stop();
}

void SearchQueue::stop()
{
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) {
        if (worker.joinable()) worker.join();
    }
}

std::shared_ptr<QueuedCancel> SearchQueue::submit(QueuedSearch&& search)
{
    auto cancel = std::make_shared<QueuedCancel>();
    const bool wide = is_wide(search);
    const Mirror* const mirror = search.settings.mirror.get();
    bool wakes = false;
    {
        std::lock_guard lock(mutex_);
        if (queues_.empty() && idle_since_ != Clock::time_point{}) idle_.add(Clock::now() - idle_since_);
        auto queue = std::find_if(queues_.begin(), queues_.end(),
                                  [mirror](const IndexQueue& other) { return other.mirror == mirror; });
        if (queue == queues_.end()) queue = queues_.insert(queues_.end(), IndexQueue{mirror, {}, {}});
        Lane& lane = wide ? queue->wide : queue->narrow;
        const bool was_ready = lane.ready();
        WaitingSearch waiting;
        waiting.search = std::move(search);
        waiting.cancel = cancel;
        lane.waiting.push_back(std::move(waiting));
        // The worker of a busy lane looks again after its batch; a lane that was ready has been announced.
        wakes = lane.ready() && !was_ready && !leave_to_watcher(wide);
    }
    if (wakes) wake(wide);
    return cancel;
}

// Wakes a worker for a lane that became ready. One of the workers takes no wide requests, so all are woken for those.
void SearchQueue::wake(bool wide)
{
    if (wide) {
        wake_.notify_all();
    } else {
        wake_.notify_one();
    }
}

// Whether a polling worker will take a lane that became ready, and no other lane was left to it. Call with the mutex
// held.
bool SearchQueue::leave_to_watcher(bool wide)
{
    if (watcher_ == std::thread::id() || (wide && !watcher_takes_wide_)) return false;
    watcher_ = std::thread::id();
    watcher_calls_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

// Call with the mutex held.
bool SearchQueue::may_watch() const
{
    return watcher_ == std::thread::id() && idle_.patience().count() > 0 && busy_poll_.has_room(0, Clock::now());
}

// Polls until a lane is left to the watcher, for idle_.patience() at most. Releases the held lock meanwhile.
void SearchQueue::watch(std::unique_lock<std::mutex>& lock, bool narrow_only)
{
    watcher_ = std::this_thread::get_id();
    watcher_takes_wide_ = !narrow_only;
    // Counted, so that a watcher that was called and still polls misses no call when the next one begins.
    const std::uint64_t seen = watcher_calls_.load(std::memory_order_relaxed);
    const auto end = Clock::now() + idle_.patience();
    lock.unlock();
    while (watcher_calls_.load(std::memory_order_relaxed) == seen) {
        const auto now = Clock::now();
        if (now >= end || !busy_poll_.has_room(0, now)) break;
        rest_between_looks();
    }
    lock.lock();
    if (watcher_ == std::this_thread::get_id()) watcher_ = std::thread::id();
}

// Call with the mutex held.
SearchQueue::Queues::iterator SearchQueue::find_ready(Lane IndexQueue::*lane)
{
    return std::find_if(queues_.begin(), queues_.end(),
                        [lane](const IndexQueue& queue) { return (queue.*lane).ready(); });
}

// Whether there is work for a worker beside the calling one, which takes a lane itself. Call with the mutex held.
bool SearchQueue::others_may_work(bool narrow_only) const
{
    std::size_t wide = 0;
    std::size_t narrow = 0;
    for (const IndexQueue& queue : queues_) {
        wide += queue.wide.ready() ? 1 : 0;
        narrow += queue.narrow.ready() ? 1 : 0;
    }
    const bool takes_one = (narrow_only ? narrow : wide + narrow) > 0;
    return stopping_ || wide + narrow > (takes_one ? 1 : 0);
}

// Takes a batch of the index whose turn it is. False: time to stop.
bool SearchQueue::take(bool narrow_only, Batch& batch)
{
    std::unique_lock lock(mutex_);
    bool has_watched = false;
    while (true) {
        batch.queue = narrow_only ? queues_.end() : find_ready(&IndexQueue::wide);
        batch.wide = batch.queue != queues_.end();
        if (!batch.wide) batch.queue = find_ready(&IndexQueue::narrow);
        if (batch.queue != queues_.end()) {
            fill(batch);
            queues_.splice(queues_.end(), queues_, batch.queue);
            if (!batch.members.empty()) return true;
            release(batch);
        } else if (stopping_ && queues_.empty()) {
            // Others may have gone to sleep before this worker dropped the last searches.
            wake_.notify_all();
            return false;
        } else if (!has_watched && may_watch()) {
            watch(lock, narrow_only);
            has_watched = true;
        } else {
            wake_.wait(lock);
        }
    }
}

// Moves members that can share a batch into it, oldest first; of the last one perhaps only a part fits.
void SearchQueue::fill(Batch& batch)
{
    Lane& lane = batch.lane();
    std::size_t most = batch.wide ? batch.queue->mirror->wide_batch() : max_batch_queries;
    lane.busy = true;
    for (auto next = lane.waiting.begin(); next != lane.waiting.end() && batch.queries < most;) {
        const bool fits =
            batch.members.empty() || can_share_batch(batch.members.front().search.settings, next->search.settings);
        if (!fits) {
            ++next;
            continue;
        }
        if (next->cancel->enter(batch.cancel)) {
            if (batch.members.empty()) most = std::min(most, queries_within(next->search.settings, max_batch_bytes));
            const std::size_t share = std::min(next->left(), most - batch.queries);
            batch.shares.push_back(share);
            batch.queries += share;
            batch.cost += static_cast<double>(share) * next->search.query_cost;
            batch.members.push_back(std::move(*next));
        } else {
            post_failure(std::move(next->search), make_error(ErrorCode::cancelled, "the search was cancelled"));
        }
        next = lane.waiting.erase(next);
    }
}

// Frees the lane of a batch.
void SearchQueue::release(Batch& batch)
{
    batch.lane().busy = false;
    if (batch.queue->idle()) queues_.erase(batch.queue);
    if (queues_.empty()) idle_since_ = Clock::now();
}

void SearchQueue::run(Batch& batch)
{
    thread_local std::shared_ptr<FinishedBatch> kept;
    thread_local OwnedRows queries;
    thread_local QueryPredicates predicates;
    const SearchSettings settings = batch.members.front().search.settings;
    std::shared_ptr<FinishedBatch> finished;
    Clock::duration dispatched{};
    try {
        const bool keeps = batch.queries <= queries_within(settings, most_kept_bytes);
        if (keeps && kept && kept->is_free()) finished = kept;
        if (!finished) finished = std::make_shared<FinishedBatch>();
        if (keeps) kept = finished;
        collect_queries(batch.members, batch.shares, queries, predicates);
        batch.cancel->token().check();
        const auto started = Clock::now();
        // On a GPU this thread alone waits for the device.
        const BusyPoll::Work work(busy_poll_, settings.mirror->on_cuda() ? 1 : pool_.threads());
        run_search(settings, {queries.view(), &predicates}, &batch.cancel->token(), pool_, finished->answer);
        dispatched = Clock::now() - started;
        settings.mirror->count_batch(batch.queries, static_cast<std::uint64_t>(dispatched.count()));
        settings.mirror->count_cost(batch.cost, static_cast<double>(dispatched.count()));
    } catch (...) {
        const ErrorReply error = describe_exception();
        for (WaitingSearch& member : batch.members) post_failure(std::move(member.search), error);
        batch.members.clear();
        // The worker keeps the answer, and may have no other search for long.
        if (finished) finished->answer.snapshot.reset();
        return;
    }
    give_out(batch, *finished, dispatched);
    FinishedBatch::send(finished);
}

// Gives each member its part of the answer. Members with queries left remain in the batch.
void SearchQueue::give_out(Batch& batch, FinishedBatch& finished, Clock::duration dispatched)
{
    const SearchAnswer& answer = finished.answer;
    std::size_t query = 0;
    std::size_t result = 0;
    std::vector<WaitingSearch> unfinished;
    for (std::size_t i = 0; i < batch.members.size(); ++i) {
        WaitingSearch& member = batch.members[i];
        const auto counts = std::span(answer.counts).subspan(query, batch.shares[i]);
        std::size_t found = 0;
        for (std::uint32_t count : counts) found += count;
        const SearchSlice part{counts,
                               std::span(answer.results).subspan(result, found),
                               std::span(answer.places).subspan(result, found),
                               static_cast<std::uint32_t>(batch.queries),
                               dispatched,
                               answer.bound_width,
                               filtered_of(answer, query, counts.size()),
                               answer};
        query += counts.size();
        result += found;
        member.note(part);
        if (counts.size() == member.search.count) {
            finished.add(std::move(member), &part);
            continue;
        }
        member.keep(part);
        if (member.left() > 0) {
            unfinished.push_back(std::move(member));
        } else {
            finished.add(std::move(member), nullptr);
        }
    }
    batch.members = std::move(unfinished);
}

void SearchQueue::work(bool narrow_only)
{
    Batch batch;
    while (take(narrow_only, batch)) {
        run(batch);
        bool wakes = false;
        {
            std::lock_guard lock(mutex_);
            auto& waiting = batch.lane().waiting;
            std::move(batch.members.rbegin(), batch.members.rend(), std::front_inserter(waiting));
            release(batch);
            wakes = others_may_work(narrow_only);
        }
        if (wakes) wake_.notify_all();
        batch = Batch();
    }
}

}  // namespace pgwarp
