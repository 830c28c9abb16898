// The search queue alone: searches that are cancelled at any time, searches that cannot share a batch, and its end.
#include "engine/search/search_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

constexpr std::size_t workers = 3;
constexpr auto forgotten = std::chrono::seconds(20);

class RunsAtOnce final : public Mailbox
{
public:
    void post(std::function<void()> task) override { task(); }
};

// Keeps its tasks until they are asked for.
class HeldTasks final : public Mailbox
{
public:
    void post(std::function<void()> task) override
    {
        std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        came_.notify_all();
    }
    // Waits for so many tasks and takes all.
    std::vector<std::function<void()>> take(std::size_t count)
    {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(came_.wait_for(lock, forgotten, [&] { return tasks_.size() >= count; }));
        return std::exchange(tasks_, {});
    }

private:
    std::mutex mutex_;
    std::condition_variable came_;
    std::vector<std::function<void()>> tasks_;
};

class EngineSearchQueue : public testing::Test
{
protected:
    EngineSearchQueue() : client_(server_.path())
    {
        for (std::uint32_t i = 0; i < 3; ++i) {
            index_.key.relation = 20 + i;
            load(client_, index_, build(client_, index_));
            mirrors_.push_back(server_.engine().residency.find_resident(index_.key));
        }
    }
    ~EngineSearchQueue() override { test_method_state().query_us = 0; }

    std::unique_ptr<SearchQueue> make_queue()
    {
        return std::make_unique<SearchQueue>(workers, server_.engine().search_pool, server_.engine().busy_poll);
    }
    static RowView rows_of(const float* values, std::uint32_t count)
    {
        RowView rows;
        rows.count = count;
        rows.width = 4;
        rows.values = values;
        return rows;
    }
    QueuedSearch make_search(std::size_t mirror, std::uint32_t count, std::uint32_t k = 1)
    {
        QueuedSearch search;
        search.settings.mirror = mirrors_[mirror];
        search.settings.k = k;
        search.queries.append(rows_of(zeros_.data(), count));
        search.count = count;
        search.query_cost = 1;
        search.mailbox = &mailbox_;
        search.answered = [this, count](const SearchSettings&, const SearchSlice& slice) {
            if (slice.counts.size() != count) ++wrong_;
            ++answered_;
        };
        search.failed = [this](const SearchSettings&, const ErrorReply&) { ++failed_; };
        return search;
    }

    TestIndex index_ = TestIndex::random(20, 4, Metric::l2);
    TestServer server_;
    RunsAtOnce mailbox_;
    EngineClient client_;
    std::vector<std::shared_ptr<Mirror>> mirrors_;
    std::vector<float> zeros_ = std::vector<float>(std::size_t{4} * 600);
    std::atomic<int> answered_{0};
    std::atomic<int> failed_{0};
    std::atomic<int> wrong_{0};
};

// A worker answers the next batches while the threads of the first one have not given its answers.
TEST_F(EngineSearchQueue, AnswersOnTheirWayAreNotOverwritten)
{
    constexpr std::size_t batches = 12;
    HeldTasks held;
    std::unique_ptr<SearchQueue> queue = make_queue();
    std::vector<std::function<void()>> tasks;
    std::vector<Tid> found(batches);
    for (std::size_t i = 0; i < batches; ++i) {
        QueuedSearch search = make_search(0, 1);
        search.queries = {};
        search.queries.append(rows_of(index_.vectors.data() + 4 * i, 1));
        search.mailbox = &held;
        search.answered = [&found, i](const SearchSettings&, const SearchSlice& slice) {
            found[i] = slice.results[0].tid;
        };
        queue->submit(std::move(search));
        for (auto& task : held.take(1)) tasks.push_back(std::move(task));
    }
    for (const auto& task : tasks) task();
    for (std::size_t i = 0; i < batches; ++i) EXPECT_EQ(found[i], index_.tids[i]) << i;
}

TEST_F(EngineSearchQueue, AThreadGetsOneTaskABatch)
{
    constexpr std::size_t searches = 40;
    HeldTasks first;
    HeldTasks second;
    test_method_state().searches = 0;
    test_method_state().query_us = 20000;
    std::unique_ptr<SearchQueue> queue = make_queue();
    for (std::size_t i = 0; i < searches; ++i) {
        QueuedSearch search = make_search(0, 1);
        search.mailbox = i % 2 == 0 ? &first : &second;
        queue->submit(std::move(search));
    }
    queue->stop();
    std::size_t tasks = 0;
    for (HeldTasks* const held : {&first, &second}) {
        for (const auto& task : held->take(1)) {
            task();
            ++tasks;
        }
    }
    EXPECT_EQ(answered_, static_cast<int>(searches));
    EXPECT_LE(tasks, 2U * static_cast<unsigned>(test_method_state().searches)) << "two threads";
}

TEST_F(EngineSearchQueue, AnAnswerThatCannotBeGivenFails)
{
    std::unique_ptr<SearchQueue> queue = make_queue();
    QueuedSearch search = make_search(0, 1);
    search.answered = [](const SearchSettings&, const SearchSlice&) { throw std::bad_alloc(); };
    queue->submit(std::move(search));
    queue->submit(make_search(1, 1));
    queue->stop();
    EXPECT_EQ(failed_, 1);
    EXPECT_EQ(answered_, 1);
}

// A worker drops the last searches while another one, which takes no wide ones, waits.
TEST_F(EngineSearchQueue, EndsWithCancelledSearches)
{
    constexpr int rounds = 2000;
    int submitted = 0;
    std::mt19937 random(3);
    for (int round = 0; round < rounds; ++round) {
        std::unique_ptr<SearchQueue> queue = make_queue();
        std::vector<std::shared_ptr<QueuedCancel>> cancels;
        // Workers are asleep, or still begin.
        if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        const std::size_t count = 1 + random() % 3;
        for (std::size_t i = 0; i < count; ++i) cancels.push_back(queue->submit(make_search(random() % 3, 40)));
        for (const auto& cancel : cancels) cancel->leave();
        submitted += static_cast<int>(count);
        std::promise<void> ended;
        std::future<void> end = ended.get_future();
        std::thread stopping([&] {
            queue->stop();
            ended.set_value();
        });
        const bool is_over = end.wait_for(forgotten) == std::future_status::ready;
        if (!is_over) {
            // Any worker that waits for ever takes a narrow search, and ends.
            queue->submit(make_search(0, 1));
            ++submitted;
        }
        stopping.join();
        ASSERT_TRUE(is_over) << "round " << round;
    }
    EXPECT_EQ(answered_ + failed_, submitted);
}

// Sessions on their own wait for each of their searches, so that no later one wakes a worker for a forgotten one.
TEST_F(EngineSearchQueue, AnswersOrCancelsEachSearchOnce)
{
    constexpr int sessions = 4;
    constexpr int rounds = 1500;
    test_method_state().query_us = 3;
    std::unique_ptr<SearchQueue> queue = make_queue();
    std::atomic<int> late{0};
    std::atomic<int> twice{0};
    std::vector<std::thread> threads;
    for (int session = 0; session < sessions; ++session) {
        threads.emplace_back([&, session] {
            std::mt19937 random(static_cast<unsigned>(session));
            for (int round = 0; round < rounds && late == 0; ++round) {
                struct Call {
                    std::promise<void> over;
                    std::atomic<int> calls{0};
                };
                std::vector<std::shared_ptr<Call>> calls;
                std::vector<std::shared_ptr<QueuedCancel>> cancels;
                const std::size_t asked = 1 + random() % 3;
                for (std::size_t i = 0; i < asked; ++i) {
                    auto call = std::make_shared<Call>();
                    const std::uint32_t width = random() % 3 == 0 ? 40 + random() % 500 : 1 + random() % 3;
                    QueuedSearch search = make_search(random() % 3, width, 1 + random() % 3);
                    search.settings.effort = static_cast<std::int64_t>(random() % 2);
                    const auto note = [call, &twice] {
                        if (call->calls.fetch_add(1) == 0) {
                            call->over.set_value();
                        } else {
                            ++twice;
                        }
                    };
                    search.answered = [note, count = search.count, this](const SearchSettings&,
                                                                         const SearchSlice& slice) {
                        if (slice.counts.size() != count) ++wrong_;
                        ++answered_;
                        note();
                    };
                    search.failed = [note, this](const SearchSettings&, const ErrorReply&) {
                        ++failed_;
                        note();
                    };
                    cancels.push_back(queue->submit(std::move(search)));
                    calls.push_back(std::move(call));
                }
                for (const auto& cancel : cancels) {
                    if (random() % 3 != 0) continue;
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60));
                    cancel->leave();
                }
                for (const auto& call : calls) {
                    if (call->over.get_future().wait_for(forgotten) != std::future_status::ready) ++late;
                }
                if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    queue->stop();
    EXPECT_EQ(late, 0);
    EXPECT_EQ(twice, 0);
    EXPECT_EQ(wrong_, 0);
    EXPECT_GT(answered_, 0);
    EXPECT_GT(failed_, 0);
}

}  // namespace
}  // namespace pgwarp
