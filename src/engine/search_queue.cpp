#include "engine/search_queue.h"

#include <algorithm>

namespace pgwarp
{

namespace
{

constexpr std::size_t max_batch_queries = 4096;

}  // namespace

SearchQueue::SearchQueue(std::size_t workers, ThreadPool& pool) : pool_(pool)
{
    for (std::size_t i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
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

std::shared_ptr<BatchCancel> SearchQueue::submit(QueuedSearch&& search)
{
    std::lock_guard lock(mutex_);
    auto batch = std::find_if(waiting_.begin(), waiting_.end(), [&](const Batch& other) {
        return other.queries + search.count <= max_batch_queries && !other.cancel->token().cancelled() &&
               can_share_batch(other.members.front().settings, search.settings);
    });
    if (batch == waiting_.end()) batch = waiting_.emplace(waiting_.end());
    batch->queries += search.count;
    batch->members.push_back(std::move(search));
    batch->cancel->join();
    wake_.notify_one();
    return batch->cancel;
}

// Takes the first batch whose index is idle. False: time to stop.
bool SearchQueue::take(Batch& batch)
{
    std::unique_lock lock(mutex_);
    while (true) {
        const auto ready = std::find_if(waiting_.begin(), waiting_.end(), [this](const Batch& other) {
            return std::find(busy_.begin(), busy_.end(), other.members.front().settings.mirror.get()) == busy_.end();
        });
        if (ready != waiting_.end()) {
            batch = std::move(*ready);
            waiting_.erase(ready);
            busy_.push_back(batch.members.front().settings.mirror.get());
            return true;
        }
        if (stopping_ && waiting_.empty()) return false;
        wake_.wait(lock);
    }
}

void SearchQueue::run(Batch& batch)
{
    thread_local SearchAnswer answer;
    thread_local std::vector<float> queries;
    const auto started = Clock::now();
    try {
        std::span<const float> all = batch.members.front().queries;
        if (batch.members.size() > 1) {
            queries.clear();
            for (const QueuedSearch& member : batch.members) {
                queries.insert(queries.end(), member.queries.begin(), member.queries.end());
            }
            all = queries;
        }
        batch.cancel->token().check();
        const SearchSettings& settings = batch.members.front().settings;
        run_search(settings, all, batch.queries, &batch.cancel->token(), pool_, answer);
        settings.mirror->count(batch.queries, static_cast<std::uint64_t>((Clock::now() - started).count()));
    } catch (...) {
        const ErrorReply error = describe_exception();
        for (QueuedSearch& member : batch.members) member.failed(error);
        return;
    }
    deliver(batch.members, answer, static_cast<std::uint32_t>(batch.queries), started,
            [](QueuedSearch& member, const SearchSlice& slice) { member.answered(slice); });
    answer.snapshot.reset();
}

void SearchQueue::work()
{
    Batch batch;
    while (take(batch)) {
        const Mirror* mirror = batch.members.front().settings.mirror.get();
        run(batch);
        {
            std::lock_guard lock(mutex_);
            busy_.erase(std::find(busy_.begin(), busy_.end(), mirror));
        }
        wake_.notify_all();
        batch = Batch();
    }
}

}  // namespace pgwarp
