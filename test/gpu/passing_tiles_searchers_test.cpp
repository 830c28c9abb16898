// Searches by matrix tiles through the searchers, whose batches are large enough that tiles take less time: each way of
// keeping rows, several threads, and short memory.
#include <cmath>
#include <thread>

#include "device/context.h"
#include "exact/exact.h"
#include "graph_fixture.h"
#include "methods/ordered_scan.h"
#include "methods/tested_rows.h"
#include "predicate_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t row_count = 20000;
constexpr std::size_t asked = 6000;
constexpr std::uint32_t k = 10;

// Nine tenths of the rows pass each predicate.
class LargeBatch
{
public:
    LargeBatch(std::uint32_t dimensions, unsigned seed) : queries_(random_rows(asked, dimensions, seed))
    {
        for (std::uint64_t row = 0; row < row_count; ++row) codes_.push_back(row * 7919 % 1000);
        for (std::uint64_t i = 0; i < 500; ++i) predicates_.push_back(Predicate().where(0, i % 100, i % 100 + 899));
        for (std::size_t q = 0; q < asked; ++q)
            filters_.push_back({predicates_[q % 500], codes_.data(), 1, row_count / 10 * 9, {}});
    }
    LargeBatch(const LargeBatch&) = delete;
    LargeBatch& operator=(const LargeBatch&) = delete;

    SearchBatch first(std::size_t count, RowBitmap dead = {}) const
    {
        SearchBatch batch;
        batch.queries = std::span(queries_).first(count * queries_.size() / asked);
        batch.count = count;
        batch.k = k;
        batch.dead = dead;
        batch.filters = std::span(filters_).first(count);
        return batch;
    }

private:
    std::vector<float> queries_;
    std::vector<std::uint64_t> codes_;
    std::vector<Predicate> predicates_;
    std::vector<RowFilter> filters_;
};

void search_passing(const Searcher& searcher, const SearchBatch& batch, Results& found, ThreadPool& pool)
{
    dynamic_cast<const TestsAllRows&>(searcher).search_passing(batch, found, pool);
}

// Every 101st answer is that of an exact search in which the rows that do not pass are dead.
void expect_exact(const Searcher& searcher, const SearchBatch& batch, const Results& found, ThreadPool& pool)
{
    ASSERT_EQ(found.size(), batch.count);
    const std::size_t dimensions = batch.queries.size() / batch.count;
    for (std::size_t q = 0; q < batch.count; q += 101) {
        std::vector<std::uint64_t> others(batch.dead.begin(), batch.dead.end());
        others.resize((row_count + 63) / 64);
        for (std::size_t row = 0; row < row_count; ++row)
            if (!batch.filters[q].passes(row)) set_bit(others, row);
        SearchBatch one;
        one.queries = batch.queries.subspan(q * dimensions, dimensions);
        one.count = 1;
        one.k = k;
        one.dead = others;
        std::vector<RowResult> right;
        searcher.search_exact(one, -HUGE_VAL, 0, right, pool);
        ASSERT_EQ(found[q].size(), right.size()) << "query " << q;
        for (std::size_t i = 0; i < right.size(); ++i) {
            ASSERT_EQ(found[q][i].row, right[i].row) << "query " << q << " place " << i;
            ASSERT_EQ(found[q][i].distance, right[i].distance) << "query " << q << " place " << i;
        }
    }
}

std::unique_ptr<Searcher> load_exact(cuda::Context& context, std::uint32_t dimensions, ThreadPool& pool)
{
    const Index index(Method::exact, Metric::l2, dimensions, random_rows(row_count, dimensions, 21), {}, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    auto searcher = cuda::make_exact_searcher(context, index.shape, arrays);
    index.write_to(*searcher, 100003);
    searcher->finish_load(pool);
    return searcher;
}

void expect_served(const Searcher& searcher, std::uint32_t dimensions, bool own_scores)
{
    ThreadPool pool(2);
    const LargeBatch large(dimensions, 22);
    std::vector<std::uint64_t> dead((row_count + 63) / 64);
    for (std::size_t row = 0; row < row_count; row += 3) set_bit(dead, row);
    const SearchBatch batch = large.first(asked, dead);
    const std::uint64_t before = searcher.memory_bytes();
    Results found;
    search_passing(searcher, batch, found, pool);
    const std::uint64_t made = searcher.memory_bytes() - before;
    if (own_scores) {
        EXPECT_EQ(made, row_count * sizeof(std::uint64_t));
    } else {
        EXPECT_GT(made, row_count * sizeof(std::uint64_t));
    }
    expect_exact(searcher, batch, found, pool);
}

TEST(PassingTiles, OfTheSearchers)
{
    constexpr std::uint32_t dimensions = 128;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(row_count, dimensions, 21);
    for (const int vectors : {0, 1}) {
        SCOPED_TRACE("graph, vectors " + std::to_string(vectors));
        const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", vectors}}), pool);
        const auto searcher = load_graph(index, shared_context(), pool);
        ASSERT_NO_FATAL_FAILURE(expect_served(*searcher, dimensions, false));
    }
    SCOPED_TRACE("exact");
    const auto searcher = load_exact(shared_context(), dimensions, pool);
    ASSERT_NO_FATAL_FAILURE(expect_served(*searcher, dimensions, true));
}

// Tiles need more than 200 KB for one query, of which 160 are the scores of 64 slots; pieces need 8 KB.
TEST(PassingTiles, ShortMemoryLeavesTheBatchToPieces)
{
    constexpr std::uint32_t dimensions = 128;
    constexpr std::size_t left = std::size_t{128} << 10;
    ThreadPool pool(2);
    cuda::Context context(0, std::uint64_t{64} << 20);
    const auto searcher = load_exact(context, dimensions, pool);
    const LargeBatch large(dimensions, 23);
    Results found;
    search_passing(*searcher, large.first(1), found, pool);  // sends the attributes
    {
        const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
        const cuda::DeviceArray<std::byte> others(context.pool(), context.pool().unspent() - left, "others", stream);
        search_passing(*searcher, large.first(asked), found, pool);
    }
    expect_exact(*searcher, large.first(asked), found, pool);
}

// Several threads search at once, the first of which makes what all read.
TEST(PassingTiles, ThreadsShareASearcher)
{
    constexpr std::uint32_t dimensions = 64;
    ThreadPool build_pool(2);
    const std::vector<float> rows = random_rows(row_count, dimensions, 45);
    const LargeBatch batches[] = {{dimensions, 46}, {dimensions, 47}};
    for (const int vectors : {0, 1}) {
        const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", vectors}}), build_pool);
        const auto searcher = load_graph(index, shared_context(), build_pool);
        std::vector<Results> found(4);
        const auto search = [&](std::size_t t) {
            ThreadPool pool(1);
            const SearchBatch batch = batches[t % 2].first(asked);
            for (int round = 0; round < 3; ++round) search_passing(*searcher, batch, found[t], pool);
        };
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < found.size(); ++t) threads.emplace_back(search, t);
        for (std::thread& thread : threads) thread.join();
        for (std::size_t t = 0; t < 2; ++t) {
            SCOPED_TRACE("thread " + std::to_string(t));
            ASSERT_NO_FATAL_FAILURE(expect_exact(*searcher, batches[t].first(asked), found[t], build_pool));
            expect_same(found[t], found[t + 2], "threads of the same batch");
        }
        for (std::size_t t = 0; t < 2; ++t)
            for (std::size_t q = 0; q < asked; ++q)
                for (const RowResult& one : found[t][q])
                    ASSERT_TRUE(batches[t].first(asked).filters[q].passes(one.row)) << "thread " << t << " query " << q;
    }
}

}  // namespace
}  // namespace pgwarp::test
