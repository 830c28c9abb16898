// The base of searchers on a device, with a method whose kernels run on the host: chunks, every way of answers,
// tombstones, continuations, and memory that is short.
#include "device/searcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "device/error.h"
#include "device/wait.h"
#include "fake_cuda.h"
#include "methods/ordered_scan.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda;

constexpr std::size_t width = 3;

std::vector<float> random_floats(std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    // Few values: many rows are equally far away.
    std::uniform_int_distribution<int> value(0, 4);
    std::vector<float> values(count);
    for (float& one : values) one = static_cast<float>(value(random));
    return values;
}

double distance(const float* a, const float* b)
{
    double sum = 0;
    for (std::size_t d = 0; d < width; ++d) sum += double{a[d] - b[d]} * (a[d] - b[d]);
    return std::sqrt(sum);
}

// Compares all rows. Its kernels read and write the same memory as a device's kernels.
class HostedSearcher : public DeviceSearcher
{
public:
    HostedSearcher(Context& context, std::vector<float> rows)
        : DeviceSearcher(context, width, "hosted workspace"), rows_(std::move(rows))
    {
    }
    void write(const std::string&, std::uint64_t, std::span<const std::byte>) override {}
    void finish_load(ThreadPool&) override {}
    std::uint64_t memory_bytes() const override { return 0; }
    ResultKind result_kind() const override { return ResultKind::exact; }
    double search_cost(const SearchBatch&) const override { return 1; }
    ParameterList resolved_settings(const SearchBatch&) const override { return {}; }

    ChunkPlan way;                       // of all chunks: how queries go and answers come
    std::size_t most = ~std::size_t{0};  // queries of a chunk
    std::size_t query_workspace = 64;    // bytes a query
    std::size_t least = 1;               // queries of a chunk of the first round
    std::size_t form_bytes = 8;          // of tombstones
    std::uint32_t most_ordered = 50;     // rows of a continuation
    bool declines = false;               // every third query is left unanswered at first
    bool backwards = false;              // the first round has the queries in the opposite order
    mutable std::atomic<std::size_t> planned{0};
    mutable std::atomic<std::size_t> last_chunk{0};  // queries of the chunk that was enqueued last
    mutable std::atomic<std::size_t> few{0};
    mutable std::atomic<std::size_t> unanswered{0};

protected:
    std::size_t row_count() const override { return rows_.size() / width; }
    std::chrono::milliseconds search_patience(const SearchBatch&) const override { return std::chrono::seconds(1); }
    Tombstones make_tombstones(RowBitmap bitmap, const Context::Lease& stream) const override
    {
        Tombstones dead = DeviceSearcher::make_tombstones(bitmap, stream);
        dead.form = DeviceArray<std::byte>(context().pool(), form_bytes, "hosted tombstones", stream);
        return dead;
    }
    void search_queries(const SearchBatch& batch, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        const auto plan_of = [&](std::size_t, std::size_t count, std::size_t) {
            ++planned;
            ChunkPlan plan = way;
            plan.count = static_cast<std::uint32_t>(std::min(count, most));
            plan.k =
                static_cast<std::uint32_t>(std::min<std::size_t>(way.ordered ? batch.k : 2 * batch.k, row_count()));
            plan.workspace = plan.count * query_workspace;
            return plan;
        };
        const auto enqueue = [&](bool may_decline) {
            return [=, this](const ChunkPlan& plan, const Chunk& chunk) {
                last_chunk = plan.count;
                answer(plan, chunk, {-HUGE_VAL, 0}, dead, may_decline);
            };
        };
        std::vector<std::uint32_t> numbers(batch.count);
        std::iota(numbers.rbegin(), numbers.rend(), 0U);
        const Round round = backwards ? Round(batch, std::move(numbers)) : Round(batch);
        const Unfinished left = search_round(batch, round, plan_of, enqueue(declines), results, pool, least);
        few = left.few.size();
        unanswered = left.unanswered.size();
        if (unanswered == 0) return;
        search_round(batch, Round(batch, left.unanswered), plan_of, enqueue(false), results, pool);
    }
    void continue_query(const SearchBatch& one, const RowResult& after, const Tombstones* dead, Results& results,
                        ThreadPool& pool) const override
    {
        const auto enqueue = [&](const ChunkPlan& plan, const Chunk& chunk) {
            answer(plan, chunk, after, dead, false);
        };
        ChunkPlan plan;
        plan.workspace = query_workspace;
        plan.ordered = one.k <= most_ordered;
        search_one(one, plan, enqueue, results, pool);
    }

private:
    void answer(const ChunkPlan& plan, const Chunk& chunk, const RowResult& after, const Tombstones* dead,
                bool declines_some) const
    {
        const std::uint64_t* gone = dead != nullptr ? dead->words.data() : nullptr;
        launch(chunk.stream, [=, this] {
            std::fill_n(chunk.workspace, plan.workspace, std::byte{7});
            for (std::uint32_t q = 0; q < plan.count; ++q) {
                const bool declined = declines_some && q % 3 == 0;
                const std::uint32_t found = declined ? no_answer : write_rows(plan, chunk, q, after, gone);
                __atomic_store_n(chunk.answers.found + q, found, __ATOMIC_RELEASE);
            }
        });
    }
    std::uint32_t write_rows(const ChunkPlan& plan, const Chunk& chunk, std::uint32_t q, const RowResult& after,
                             const std::uint64_t* gone) const
    {
        FirstRows first(plan.k);
        for (std::uint32_t row = 0; row < row_count(); ++row) {
            if (gone != nullptr && (gone[row / 64] >> (row % 64) & 1) != 0) continue;
            const RowResult result{distance(chunk.queries + q * width, rows_.data() + row * width), row};
            if (comes_before(after, result)) first.offer(result);
        }
        std::vector<RowResult> sorted = first.take_sorted();
        if (!plan.ordered) std::reverse(sorted.begin(), sorted.end());
        for (std::size_t i = 0; i < sorted.size(); ++i) {
            chunk.answers.values[q * plan.k + i] = sorted[i].distance;
            chunk.answers.rows[q * plan.k + i] = sorted[i].row;
        }
        return static_cast<std::uint32_t>(sorted.size());
    }

    std::vector<float> rows_;
};

class DeviceSearch : public testing::Test
{
protected:
    void SetUp() override { fake_cuda().free_bytes = std::size_t{1} << 40; }
    void TearDown() override { fake_cuda().free_bytes = std::size_t{1} << 40; }

    SearchBatch batch_of(std::size_t count, std::uint32_t k) const
    {
        SearchBatch batch;
        batch.queries = std::span(queries).first(count * width);
        batch.count = count;
        batch.k = k;
        return batch;
    }
    std::vector<RowResult> expected(std::size_t query, std::size_t k, RowBitmap dead = {},
                                    RowResult after = {-HUGE_VAL, 0}) const
    {
        FirstRows first(k);
        for (std::uint32_t row = 0; row < rows.size() / width; ++row) {
            const RowResult result{distance(queries.data() + query * width, rows.data() + row * width), row};
            const bool gone = row / 64 < dead.size() && bit_is_set(dead, row);  // rows beyond the end are alive
            if (!gone && comes_before(after, result)) first.offer(result);
        }
        return first.take_sorted();
    }
    void expect_answers(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> results;
        searcher->search(batch, results, pool);
        expect_answers(batch, results);
    }
    void expect_answers(const SearchBatch& batch, const std::vector<std::vector<RowResult>>& results) const
    {
        ASSERT_EQ(results.size(), batch.count);
        for (std::size_t q = 0; q < batch.count; ++q) {
            expect_same(results[q], expected(q, batch.k, batch.dead));
        }
    }
    static void expect_same(const std::vector<RowResult>& actual, const std::vector<RowResult>& wanted)
    {
        ASSERT_EQ(actual.size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            ASSERT_EQ(actual[i].row, wanted[i].row);
            ASSERT_EQ(actual[i].distance, wanted[i].distance);
        }
    }

    ThreadPool pool{2};
    Context context{0, std::uint64_t{1} << 30};
    std::vector<float> rows = random_floats(400 * width, 1);
    std::vector<float> queries = random_floats(700 * width, 2);
    std::unique_ptr<HostedSearcher> searcher = std::make_unique<HostedSearcher>(context, rows);
};

TEST_F(DeviceSearch, AnswersByEveryWay)
{
    for (const bool in_place : {false, true}) {
        for (const bool on_device : {false, true}) {
            for (const bool ordered : {false, true}) {
                for (const int watched : {0, 1000000}) {
                    if (on_device && watched > 0) continue;
                    searcher->way.reads_in_place = in_place;
                    searcher->way.answers_on_device = on_device;
                    searcher->way.ordered = ordered;
                    searcher->way.watched = std::chrono::microseconds(watched);
                    for (const std::size_t count : {1, 5, 700}) expect_answers(batch_of(count, 10));
                    expect_answers(batch_of(3, 1000));
                }
            }
        }
    }
    expect_answers(batch_of(3, 0));
    expect_answers(batch_of(0, 10));
    HostedSearcher empty(context, {});
    std::vector<std::vector<RowResult>> results(7, {{1, 1}});
    empty.search(batch_of(2, 10), results, pool);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_TRUE(results[0].empty());
}

// Enough results that they are copied and handed out in several pieces.
TEST_F(DeviceSearch, BringsLargeAnswersInPieces)
{
    queries = random_floats(3000 * width, 4);
    searcher->way.answers_on_device = true;
    std::vector<std::vector<RowResult>> results;
    const SearchBatch batch = batch_of(3000, 200);
    searcher->search(batch, results, pool);
    for (const std::size_t q : {0, 1499, 1500, 2999}) expect_same(results[q], expected(q, 200));
}

TEST_F(DeviceSearch, GoesInChunks)
{
    searcher->most = 64;
    expect_answers(batch_of(700, 5));
    EXPECT_EQ(searcher->planned, 11U);
    EXPECT_EQ(searcher->last_chunk, 700U % 64);
}

TEST_F(DeviceSearch, SearchesAgainForWhatARoundLeaves)
{
    searcher->declines = true;
    searcher->most = 10;
    expect_answers(batch_of(50, 5));
    EXPECT_EQ(searcher->unanswered, 20U);
    EXPECT_EQ(searcher->few, 0U);
    const std::vector<std::uint64_t> dead(7, ~std::uint64_t{1});
    SearchBatch batch = batch_of(50, 10);
    batch.dead = dead;
    searcher->declines = false;
    expect_answers(batch);
    EXPECT_EQ(searcher->few, 50U);
}

// Calls of the runtime for one query are counted: each takes microseconds.
TEST_F(DeviceSearch, AllocatesAndCopiesNothingAfterTheFirst)
{
    searcher->way.reads_in_place = true;
    searcher->way.watched = std::chrono::microseconds(1000000);
    const std::vector<std::uint64_t> dead{5};
    SearchBatch batch = batch_of(1, 10);
    batch.dead = dead;
    batch.dead_version = new_bitmap_version();
    expect_answers(batch);
    const std::size_t device = fake_cuda().device_allocations;
    const std::size_t pinned = fake_cuda().pinned_allocations;
    const std::size_t copies = fake_cuda().copies;
    const std::size_t launches = fake_cuda().launches;
    for (int i = 0; i < 20; ++i) expect_answers(batch);
    EXPECT_EQ(fake_cuda().device_allocations, device);
    EXPECT_EQ(fake_cuda().pinned_allocations, pinned);
    EXPECT_EQ(fake_cuda().copies, copies);
    EXPECT_EQ(fake_cuda().launches, launches + 20);
    searcher->way.reads_in_place = false;
    for (int i = 0; i < 20; ++i) expect_answers(batch);
    EXPECT_EQ(fake_cuda().copies, copies + 20);
}

TEST_F(DeviceSearch, SendsTombstonesOnceAVersion)
{
    searcher->way.reads_in_place = true;
    std::vector<std::uint64_t> dead{1, 0, ~std::uint64_t{0}};  // shorter than the index
    SearchBatch batch = batch_of(2, 10);
    batch.dead = dead;
    const std::size_t copies = fake_cuda().copies;
    for (int i = 0; i < 3; ++i) expect_answers(batch);
    EXPECT_EQ(fake_cuda().copies, copies + 3);
    batch.dead_version = new_bitmap_version();
    for (int i = 0; i < 3; ++i) expect_answers(batch);
    EXPECT_EQ(fake_cuda().copies, copies + 4);
    dead[1] = 6;
    batch.dead_version = new_bitmap_version();
    for (int i = 0; i < 3; ++i) expect_answers(batch);
    EXPECT_EQ(fake_cuda().copies, copies + 5);
}

TEST_F(DeviceSearch, TakesHalfAsManyQueriesWhereMemoryIsShort)
{
    searcher->query_workspace = 1 << 20;
    fake_cuda().free_bytes = fake_cuda().device_bytes + (std::size_t{300} << 20);
    expect_answers(batch_of(700, 5));
    EXPECT_EQ(searcher->last_chunk, 175U);
}

TEST_F(DeviceSearch, TriesOnceMoreAndThenSaysThatMemoryIsShort)
{
    searcher->query_workspace = 1 << 20;
    fake_cuda().free_bytes = fake_cuda().device_bytes + 1000;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(searcher->search(batch_of(1, 5), results, pool), DeviceOutOfMemory);
    EXPECT_EQ(searcher->planned, 2U);
    std::vector<RowResult> rows_found;
    EXPECT_THROW(searcher->search_exact(batch_of(1, 5), -HUGE_VAL, 0, rows_found, pool), DeviceOutOfMemory);
    EXPECT_EQ(context.pool().used(), 0U);
    fake_cuda().free_bytes = std::size_t{1} << 40;
    expect_answers(batch_of(1, 5));
}

// The second round has no such least width, and answers by smaller chunks.
TEST_F(DeviceSearch, LeavesQueriesForWhichALeastChunkFindsNoMemory)
{
    searcher->query_workspace = 1 << 20;
    searcher->least = 16;
    fake_cuda().free_bytes = fake_cuda().device_bytes + (std::size_t{10} << 20);
    for (const std::size_t asked : {1U, 16U, 17U, 700U}) {
        SCOPED_TRACE(asked);
        expect_answers(batch_of(asked, 5));
        EXPECT_EQ(searcher->unanswered, asked == 1 ? 0U : asked);
    }
    searcher->query_workspace = 16 << 20;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(searcher->search(batch_of(3, 5), results, pool), DeviceOutOfMemory);
}

TEST_F(DeviceSearch, LeavesQueriesAfterWorkBesideAnEarlierChunk)
{
    const std::size_t used = fake_cuda().device_bytes;
    OverlappedWork work([&] {
        searcher->most = 500;
        fake_cuda().free_bytes = used + (std::size_t{10} << 20);
    });
    searcher->query_workspace = 1 << 20;
    searcher->least = 16;
    searcher->most = 64;
    SearchBatch batch = batch_of(700, 5);
    batch.overlapped_work = &work;
    expect_answers(batch);
    EXPECT_EQ(searcher->unanswered, 700U - 64);
}

// Memory that a first try frees is found by the second.
TEST_F(DeviceSearch, TriesALeastChunkOnceMore)
{
    const std::vector<std::uint64_t> dead{3};
    SearchBatch earlier = batch_of(1, 5);
    earlier.dead = dead;
    earlier.dead_version = new_bitmap_version();
    searcher->form_bytes = std::size_t{20} << 20;
    expect_answers(earlier);
    searcher->query_workspace = 1 << 20;
    searcher->least = 16;
    fake_cuda().free_bytes = fake_cuda().device_bytes + (std::size_t{1} << 20);
    expect_answers(batch_of(16, 5));
    EXPECT_EQ(searcher->unanswered, 0U);
}

// Whatever is short and whenever: all queries are answered, or not even one finds memory.
TEST_F(DeviceSearch, AnswersAllQueriesByAnyWidths)
{
    std::mt19937 random(11);
    constexpr std::size_t unit = std::size_t{1} << 20;
    int parts = 0;
    for (int round = 0; round < 400; ++round) {
        const std::size_t count = 1 + random() % 80;
        const std::size_t room = random() % 70;
        const std::size_t later = random() % 3 == 0 ? random() % 70 : room;
        SCOPED_TRACE(testing::Message() << "round " << round << ": " << count << " queries, room for " << room
                                        << ", later for " << later);
        HostedSearcher small(context, rows);
        small.query_workspace = unit;
        small.least = 1 + random() % 20;
        small.most = 1 + random() % (random() % 2 == 0 ? 5 : 64);
        small.declines = random() % 2 == 0;
        small.backwards = random() % 2 == 0;
        const std::size_t used = fake_cuda().device_bytes;
        fake_cuda().free_bytes = used + room * unit + unit / 2;
        // Wider chunks than the first, whose memory is kept, may find none.
        OverlappedWork work([&] {
            fake_cuda().free_bytes = used + later * unit + unit / 2;
            small.most = count;
        });
        SearchBatch batch = batch_of(count, 3);
        if (later != room) batch.overlapped_work = &work;
        std::vector<std::vector<RowResult>> results;
        try {
            small.search(batch, results, pool);
        } catch (const DeviceOutOfMemory&) {
            EXPECT_EQ(std::min(room, later), 0U);
            continue;
        }
        expect_answers(batch, results);
        if (!small.declines && small.unanswered > 0 && small.unanswered < count) ++parts;
    }
    EXPECT_GT(parts, 0) << "rounds of which a part remained";
}

// The form of an earlier bitmap makes room for its successor.
TEST_F(DeviceSearch, GivesTombstonesOfEarlierVersionsBack)
{
    const std::vector<std::uint64_t> dead{3};
    SearchBatch batch = batch_of(1, 5);
    batch.dead = dead;
    batch.dead_version = new_bitmap_version();
    searcher->form_bytes = 10000;
    expect_answers(batch);
    fake_cuda().free_bytes = fake_cuda().device_bytes + 9000;
    batch.dead_version = new_bitmap_version();
    expect_answers(batch);
}

TEST_F(DeviceSearch, RunsWorkBesideASearchOnce)
{
    int runs = 0;
    OverlappedWork work([&] { ++runs; });
    SearchBatch batch = batch_of(100, 5);
    batch.overlapped_work = &work;
    searcher->most = 10;
    expect_answers(batch);
    EXPECT_EQ(runs, 1);
}

TEST_F(DeviceSearch, IsNotTriedAgainWhereWorkBesideItHasBegun)
{
    OverlappedWork work([] { throw DeviceOutOfMemory(); });
    SearchBatch batch = batch_of(100, 5);
    batch.overlapped_work = &work;
    std::vector<std::vector<RowResult>> results;
    EXPECT_THROW(searcher->search(batch, results, pool), DeviceOutOfMemory);
    EXPECT_EQ(searcher->planned, 1U);
    EXPECT_EQ(context.pool().used(), 0U);  // nothing is under way any more
}

TEST_F(DeviceSearch, ContinuesInOrder)
{
    const std::vector<std::uint64_t> dead{0xF0F0F0F0F0F0F0F0, 0, 1};
    for (const std::uint32_t k : {1, 7, 50, 51, 399, 4000}) {
        SearchBatch batch = batch_of(1, k);
        batch.dead = dead;
        RowResult cursor{-HUGE_VAL, 0};
        std::size_t seen = 0;
        for (;;) {
            std::vector<RowResult> results(3);
            searcher->search_exact(batch, cursor.distance, cursor.row, results, pool);
            expect_same(results, expected(0, k, dead, cursor));
            if (testing::Test::HasFatalFailure() || results.empty()) break;
            seen += results.size();
            cursor = results.back();
        }
        EXPECT_EQ(seen, 400U - 33);
    }
}

TEST_F(DeviceSearch, ServesSeveralThreads)
{
    searcher->way.watched = std::chrono::microseconds(100);
    std::vector<std::thread> threads;
    std::vector<std::vector<std::vector<RowResult>>> results(4);
    for (auto& own : results) {
        threads.emplace_back([this, &own] {
            ThreadPool alone(1);
            for (int i = 0; i < 20; ++i) searcher->search(batch_of(20, 5), own, alone);
        });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& own : results) expect_answers(batch_of(20, 5), own);
}

TEST_F(DeviceSearch, LeavesAnswersThatAreLateToTheDriver)
{
    const Context::Lease stream = context.lease(Priority::search);
    std::vector<std::uint32_t> found{answer_pending, 3};
    launch(stream, [&found] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        __atomic_store_n(found.data(), 1U, __ATOMIC_RELEASE);
    });
    wait_for_answers(found.data(), 2, std::chrono::microseconds(100), stream);
    EXPECT_EQ(found[0], 1U);
    found[0] = answer_pending;
    EXPECT_THROW(wait_for_answers(found.data(), 2, std::chrono::microseconds(100), stream), CudaError);
}

}  // namespace
}  // namespace pgwarp::test
