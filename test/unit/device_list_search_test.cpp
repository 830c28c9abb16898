// Searchers of lists on a device by the base of all searchers: the method writes the queries, and its kernels, which
// run on the host, count common words.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "device/carver.h"
#include "device/error.h"
#include "device/searcher.h"
#include "fake_cuda.h"
#include "methods/ordered_scan.h"
#include "methods/rows/owned_rows.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;

OwnedRows random_lists(std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> words;
    while (offsets.size() <= count) {
        for (std::uint32_t word = 0; word < 20; ++word)
            if (random() % 4 == 0) words.push_back(word);
        offsets.push_back(words.size());
    }
    RowView rows;
    rows.count = count;
    rows.offsets = offsets.data();
    rows.words = words.data();
    return OwnedRows(rows);
}

// Minus the number of common words.
double distance(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b)
{
    return -static_cast<double>(
        std::ranges::count_if(a, [b](std::uint32_t word) { return std::ranges::binary_search(b, word); }));
}

struct ListPlan : ChunkPlan {
    std::span<const std::uint32_t> numbers;  // of the queries in the batch
};

// The queries as they are sent.
struct Sent {
    std::uint64_t* offsets;
    std::uint32_t* words;
};

Sent lay_out(std::size_t count, std::size_t words, Carver& memory)
{
    return {memory.take<std::uint64_t>(count + 1), memory.take<std::uint32_t>(words)};
}

// Takes the queries of a batch from the last to the first. The setting "least" is the number of common words that
// results have.
class HostedLists : public DeviceSearcher
{
public:
    HostedLists(Context& context, const OwnedRows& rows) : DeviceSearcher(context, 0, "hosted workspace"), rows_(rows)
    {
    }
    void write(const std::string&, std::uint64_t, std::span<const std::byte>) override {}
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return 0; }
    ResultKind result_kind() const override { return ResultKind::exact; }
    double search_cost(const SearchBatch&) const override { return 1; }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    std::size_t most = 64;             // queries of a chunk
    std::size_t query_workspace = 64;  // bytes a query, besides the query
    bool answers_on_device = false;
    mutable std::atomic<std::size_t> planned{0};
    mutable std::atomic<std::size_t> last_chunk{0};  // queries of the chunk that was enqueued last

protected:
    std::size_t row_count() const override { return rows_.count(); }
    std::chrono::milliseconds search_patience(const SearchBatch&) const override { return std::chrono::seconds(1); }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        std::vector<std::uint32_t> numbers(batch.count);
        std::iota(numbers.rbegin(), numbers.rend(), 0);
        search_after(batch, numbers, {-HUGE_VAL, 0}, dead, results, pool);
    }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& answer,
                        ThreadPool& pool) const override
    {
        search_after(one, {0}, after, dead, answer, pool);
    }

private:
    void search_after(const SearchBatch& batch, const std::vector<std::uint32_t>& numbers, const RowResult& after,
                      const Tombstones* dead, Results& results, ThreadPool& pool) const
    {
        const auto plan_of = [&](std::size_t first, std::size_t count, std::size_t) {
            ++planned;
            ListPlan plan;
            plan.count = static_cast<std::uint32_t>(std::min(count, most));
            plan.k = static_cast<std::uint32_t>(std::min<std::size_t>(batch.k, row_count()));
            plan.answers_on_device = answers_on_device;
            plan.numbers = std::span(numbers).subspan(first, plan.count);
            plan.host_workspace =
                carved_bytes([&](Carver& memory) { (void)lay_out(plan.count, words_of(batch, plan.numbers), memory); });
            plan.workspace = plan.host_workspace + plan.count * query_workspace;
            return plan;
        };
        const auto enqueue = [&](const ListPlan& plan, const Chunk& chunk) {
            last_chunk = plan.count;
            const Sent sent = send(batch, plan, chunk);
            const double worst = -static_cast<double>(batch.settings.get("least", 0));
            const std::uint64_t* gone = dead != nullptr ? dead->words.data() : nullptr;
            launch(chunk.stream, [=, this, k = plan.k, count = plan.count, answers = chunk.answers] {
                for (std::uint32_t q = 0; q < count; ++q) {
                    const std::span query(sent.words + sent.offsets[q], sent.offsets[q + 1] - sent.offsets[q]);
                    answer(query, after, worst, gone, k, answers.from(q, k));
                }
            });
        };
        search_round(batch, Round(batch, numbers), plan_of, enqueue, results, pool);
    }
    static std::size_t words_of(const SearchBatch& batch, std::span<const std::uint32_t> numbers)
    {
        std::size_t words = 0;
        for (const std::uint32_t number : numbers) words += batch.lists.list(number).size();
        return words;
    }
    static Sent send(const SearchBatch& batch, const ListPlan& plan, const Chunk& chunk)
    {
        const std::size_t words = words_of(batch, plan.numbers);
        Carver host(chunk.host_workspace);
        const Sent written = lay_out(plan.count, words, host);
        written.offsets[0] = 0;
        for (std::uint32_t q = 0; q < plan.count; ++q) {
            const std::span<const std::uint32_t> query = batch.lists.list(plan.numbers[q]);
            std::ranges::copy(query, written.words + written.offsets[q]);
            written.offsets[q + 1] = written.offsets[q] + query.size();
        }
        send_written(chunk, host.used());
        Carver memory(chunk.workspace);
        return lay_out(plan.count, words, memory);
    }
    void answer(std::span<const std::uint32_t> query, const RowResult& after, double worst, const std::uint64_t* gone,
                std::uint32_t k, const Answers& answers) const
    {
        FirstRows first(k);
        for (std::uint32_t row = 0; row < row_count(); ++row) {
            if (gone != nullptr && (gone[row / 64] >> (row % 64) & 1) != 0) continue;
            const RowResult result{distance(query, rows_.view().list(row)), row};
            if (result.distance <= worst && comes_before(after, result)) first.offer(result);
        }
        const std::vector<RowResult> sorted = first.take_sorted();
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            answers.values[i] = sorted[i].distance;
            answers.rows[i] = sorted[i].row;
        }
        *answers.found = static_cast<std::uint32_t>(sorted.size());
    }

    const OwnedRows& rows_;
};

class DeviceListSearch : public testing::Test
{
protected:
    void TearDown() override { fake_cuda().free_bytes = std::size_t{1} << 40; }

    SearchBatch batch_of(std::size_t count, std::uint32_t k) const
    {
        SearchBatch batch;
        batch.lists = queries.view().slice(0, count);
        batch.count = count;
        batch.k = k;
        return batch;
    }
    std::vector<RowResult> expected(const SearchBatch& batch, std::size_t query, RowResult after) const
    {
        FirstRows first(batch.k);
        for (std::uint32_t row = 0; row < rows.count(); ++row) {
            const RowResult result{distance(queries.view().list(query), rows.view().list(row)), row};
            if (result.distance > -static_cast<double>(batch.settings.get("least", 0))) continue;
            if (!bit_is_set(batch.dead, row) && comes_before(after, result)) first.offer(result);
        }
        return first.take_sorted();
    }
    void expect_answers(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> results;
        searcher.search(batch, results, pool);
        ASSERT_EQ(results.size(), batch.count);
        for (std::size_t q = 0; q < batch.count; ++q)
            ASSERT_NO_FATAL_FAILURE(expect_same(results[q], expected(batch, q, {-HUGE_VAL, 0})));
    }
    static void expect_same(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
    {
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            ASSERT_EQ(found[i].distance, wanted[i].distance);
            ASSERT_EQ(found[i].row, wanted[i].row);
        }
    }

    ThreadPool pool{2};
    Context context{0, std::uint64_t{1} << 30};
    OwnedRows rows = random_lists(300, 1);
    OwnedRows queries = random_lists(200, 2);
    HostedLists searcher{context, rows};
};

TEST_F(DeviceListSearch, GoesInChunks)
{
    for (const bool on_device : {false, true}) {
        searcher.answers_on_device = on_device;
        searcher.planned = 0;
        expect_answers(batch_of(200, 7));
        EXPECT_EQ(searcher.planned, 4U);
        EXPECT_EQ(searcher.last_chunk, 200U % 64);
        expect_answers(batch_of(1, 1000));
    }
    SearchBatch batch = batch_of(100, 300);
    const std::vector<std::uint64_t> dead{5, 0, 1, 0, ~std::uint64_t{0}};
    batch.dead = dead;
    batch.settings.set("least", std::int64_t{3});
    expect_answers(batch);
}

// Calls of the runtime for one query are counted: each takes microseconds.
TEST_F(DeviceListSearch, SendsQueriesOnceAndAllocatesNothingAfterTheFirst)
{
    expect_answers(batch_of(1, 10));
    const std::size_t device = fake_cuda().device_allocations;
    const std::size_t pinned = fake_cuda().pinned_allocations;
    const std::size_t copies = fake_cuda().copies;
    const std::size_t launches = fake_cuda().launches;
    for (int i = 0; i < 20; ++i) expect_answers(batch_of(1, 10));
    EXPECT_EQ(fake_cuda().device_allocations, device);
    EXPECT_EQ(fake_cuda().pinned_allocations, pinned);
    EXPECT_EQ(fake_cuda().copies, copies + 20);
    EXPECT_EQ(fake_cuda().launches, launches + 20);
}

TEST_F(DeviceListSearch, TakesHalfAsManyQueriesWhereMemoryIsShort)
{
    searcher.most = 1000;
    searcher.query_workspace = 1 << 20;
    fake_cuda().free_bytes = fake_cuda().device_bytes + (std::size_t{60} << 20);
    expect_answers(batch_of(200, 5));
    EXPECT_EQ(searcher.last_chunk, 50U);
    searcher.query_workspace = 100 << 20;  // more than the first search left
    fake_cuda().free_bytes = fake_cuda().device_bytes + 1000;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(searcher.search(batch_of(1, 5), results, pool), DeviceOutOfMemory);
}

// A search that is cancelled between two chunks leaves no work in its stream.
TEST_F(DeviceListSearch, IsCancelledBetweenChunks)
{
    CancelToken cancel;
    OverlappedWork work([&cancel] { cancel.cancel(); });
    SearchBatch batch = batch_of(200, 7);
    batch.cancel = &cancel;
    batch.overlapped_work = &work;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(searcher.search(batch, results, pool), Cancelled);
    EXPECT_EQ(searcher.planned, 1U);
    EXPECT_THROW(searcher.search_exact(batch, -HUGE_VAL, 0, results[0], pool), Cancelled);
    expect_answers(batch_of(200, 7));
}

// Threads with tombstones of their own, where memory is not enough for all of them: each search is right, or tells that
// memory is short, and the memory is there afterwards.
TEST_F(DeviceListSearch, SharesShortMemoryAmongThreads)
{
    searcher.most = 1000;
    searcher.query_workspace = 1 << 20;
    fake_cuda().free_bytes = fake_cuda().device_bytes + (std::size_t{40} << 20);
    std::vector<std::thread> threads;
    std::atomic<int> answered{0};
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([this, number, &answered] {
            ThreadPool alone(1);
            std::mt19937_64 random(number);
            for (int round = 0; round < 15; ++round) {
                std::vector<std::uint64_t> dead(5);
                for (std::uint64_t& word : dead) word = random() & random();
                SearchBatch batch = batch_of(1 + random() % 50, 1 + random() % 9);
                batch.dead = dead;
                batch.dead_version = round % 3 == 0 ? 0 : new_bitmap_version();
                std::vector<std::vector<RowResult>> results;
                try {
                    searcher.search(batch, results, alone);
                } catch (const DeviceOutOfMemory&) {
                    continue;
                }
                ++answered;
                for (std::size_t q = 0; q < batch.count; ++q)
                    expect_same(results[q], expected(batch, q, {-HUGE_VAL, 0}));
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(answered, 20);
    expect_answers(batch_of(30, 5));
}

// A continuation has the settings of its search, and one of the lists.
TEST_F(DeviceListSearch, ContinuesInOrder)
{
    const std::vector<std::uint64_t> dead{0xF0F0F0F0F0F0F0F0, 0, 1, 0, 0};
    for (const std::uint32_t k : {1, 7, 400}) {
        SearchBatch batch = batch_of(3, k);
        batch.dead = dead;
        batch.settings.set("least", std::int64_t{1});
        RowResult cursor{-HUGE_VAL, 0};
        for (;;) {
            std::vector<RowResult> results(3);
            searcher.search_exact(batch, cursor.distance, cursor.row, results, pool);
            expect_same(results, expected(batch, 0, cursor));
            if (testing::Test::HasFatalFailure() || results.empty()) break;
            cursor = results.back();
        }
    }
}

}  // namespace
}  // namespace pgwarp::test
