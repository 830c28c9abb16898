// Exact search on the device for many kinds of rows, k, batches and metrics, against brute force.
#include <algorithm>
#include <limits>

#include "exact_fixture.h"

namespace pgwarp::cuda
{
namespace
{

// Loads the rows as halves. The values must be halves already; for cosine they are halves before they become unit
// vectors.
std::unique_ptr<Searcher> load_halves(Metric metric, const Data& data)
{
    IndexShape shape{};
    shape.method = Method::exact;
    shape.element = ElementType::float16;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = data.dimensions;
    std::vector<half_bits> halves;
    for (const float value : data.rows) halves.push_back(half_of_float(value));
    const ArrayShape array = make_array_shape("vectors", ArrayType::f16, data.count(), data.dimensions);
    auto searcher = make_exact_searcher(device(), shape, {&array, 1});
    const auto bytes = std::as_bytes(std::span(halves));
    const std::size_t part = bytes.size() / 6 * 2;
    searcher->write("vectors", part, bytes.subspan(part));
    searcher->write("vectors", 0, bytes.first(part));
    ThreadPool pool(1);
    searcher->finish_load(pool);
    return searcher;
}

TEST(ExactSearch, RandomRows)
{
    for (const Metric metric : metrics) {
        check_search(metric, random_data(20000, 300, 128), 10);
        check_search(metric, random_data(50000, 70, 96, 20.0F, 5.0F), 100);
        check_search(metric, random_data(40000, 3, 64), 10);
    }
}

// Four queries side by side take the shared memory of a block, but for the part of its static variables.
TEST(ExactSearch, QueriesThatFillSharedMemory)
{
    const auto most = static_cast<std::uint32_t>(device().shared_bytes_per_block() / (4 * sizeof(float)) / 64 * 64);
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {most, most - 64})
            check_search(metric, random_data(700, 4, dimensions), 10);
    }
}

TEST(ExactSearch, RowsInHalves)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {1U, 100U, 384U}) {
            Data data = random_data(5000, 40, dimensions);
            for (std::size_t i = 0; i < data.rows.size(); ++i) {
                const int exponent = metric == Metric::cosine ? static_cast<int>(i / dimensions % 30) - 20 : 0;
                data.rows[i] = float_of_half(half_of_float(std::ldexp(data.rows[i], exponent)));
                if (data.rows[i] == 0) data.rows[i] = 0x1p-24F;
            }
            if (metric == Metric::cosine) normalise(data.queries, dimensions);
            const auto searcher = load_halves(metric, data);
            if (metric == Metric::cosine) normalise(data.rows, dimensions);
            SearchBatch batch;
            batch.queries = data.queries;
            batch.count = data.asked();
            batch.k = 10;
            std::vector<std::vector<RowResult>> results;
            ThreadPool pool(1);
            searcher->search(batch, results, pool);
            for (std::uint32_t q = 0; q < data.asked(); ++q) {
                expect_same(results[q], brute_force(metric, data, q, 10, {}), q);
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

TEST(ExactSearch, AwkwardDimensions)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t dimensions : {1U, 3U, 127U, 300U}) {
            check_search(metric, random_data(10000, 40, dimensions), 10);
            check_search(metric, random_data(10000, 1, dimensions), 5);
        }
        check_search(metric, random_data(9000, 40, 1536), 10);
        check_search(metric, random_data(5000, 12, 16000), 3);
        check_search(metric, random_data(5000, 2, 16000), 3);
    }
}

TEST(ExactSearch, FewRowsAndLargeK)
{
    for (const Metric metric : metrics) {
        check_search(metric, random_data(1, 5, 16), 10);
        check_search(metric, random_data(100, 30, 5), 1000);
        check_search(metric, random_data(3000, 30, 20), 300);
        check_search(metric, random_data(6000, 30, 20), 512);
        check_search(metric, random_data(20000, 20, 20), 400);
        check_search(metric, random_data(20000, 5, 20), 3000);
        check_search(metric, random_data(70000, 20, 32), 512);
    }
    const Data none{4, {}, gaussian(8, 1)};
    check_search(Metric::l2, none, 3);
}

// All of these rows are proposals. The best are moved to the front and sorted, the others only where the proof needs
// them.
TEST(ExactSearch, FewRowsForFewQueries)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t rows : {512U, 513U, 700U, 2000U, 4095U, 4096U}) {
            for (const std::uint32_t k : {1U, 10U, 64U, 102U, 103U}) check_search(metric, random_data(rows, 3, 40), k);
        }
        Data copies = random_data(3000, 5, 32);
        for (std::size_t i = 1500 * 32; i < copies.rows.size(); ++i) copies.rows[i] = copies.rows[i % 32];
        std::copy_n(copies.rows.begin(), 32, copies.queries.begin());
        check_search(metric, copies, 10);
    }
}

// One pass, in which each block proposes the best of its rows: up to 131,072 rows, and just above.
TEST(ExactSearch, BestOfEachBlock)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t rows : {1U, 255U, 257U, 5000U, 62500U, 131072U, 131073U}) {
            for (const std::uint32_t k : {1U, 10U, 100U, 500U}) {
                for (const std::uint32_t queries : {1U, 4U}) {
                    const ExactStatistics statistics = check_search(metric, random_data(rows, queries, 24), k);
                    EXPECT_EQ(statistics.filtered_again + statistics.scanned, 0U);
                }
            }
        }
        // All near rows lie in one block.
        Data clustered = random_data(50000, 4, 24);
        for (std::size_t i = 0; i < 400; ++i) {
            const std::size_t query = i % 4 * 24;
            for (std::size_t d = 0; d < 24; ++d)
                clustered.rows[i * 24 + d] = clustered.queries[query + d] + 1e-3F * static_cast<float>(i + d);
        }
        check_search(metric, clustered, 50);
        // Only dead rows in most blocks.
        std::vector<std::uint64_t> dead(20000 / 64 + 1, ~0ULL);
        dead[17] = 0;
        for (const std::uint32_t k : {10U, 64U, 100U}) check_search(metric, random_data(20000, 3, 24), k, dead);
    }
}

TEST(ExactSearch, WideAnswers)
{
    for (const Metric metric : metrics) {
        EXPECT_EQ(check_search(metric, random_data(60000, 300, 24), 1000).scanned, 0U);
        EXPECT_EQ(check_search(metric, random_data(9000, 10, 100), 2000).scanned, 0U);
        EXPECT_EQ(check_search(metric, random_data(200000, 3, 16), 10000).scanned, 0U);
        check_search(metric, random_data(30000, 5, 16), 20000);
        Data copies = random_data(50000, 20, 16);
        for (std::size_t i = 0; i < copies.rows.size(); ++i) copies.rows[i] = copies.rows[i / 16 % 700 * 16 + i % 16];
        check_search(metric, copies, 1000);
        std::vector<std::uint64_t> dead(60000 / 64 + 1, 0x123456789ABCDEFULL);
        check_search(metric, random_data(60000, 20, 24), 600, dead);
    }
}

// One searcher, whose memory serves searches of many sizes in turn.
TEST(ExactSearch, FewQueriesInTurn)
{
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
        const Data data = random_data(70000, 70, 33);
        const auto searcher = load(metric, data);
        ThreadPool pool(4);
        std::vector<std::vector<RowResult>> results;
        std::vector<std::uint64_t> dead(70000 / 64 + 1);
        std::uint32_t first = 0;
        for (const std::uint32_t count : {1U, 64U, 3U, 5U, 1U, 65U, 2U, 9U, 4U, 1U}) {
            for (const std::uint32_t k : {10U, 1U, 300U}) {
                Data asked{33, data.rows, {}};
                first = (first + 7) % (70 - count + 1);
                asked.queries.assign(data.queries.begin() + first * 33, data.queries.begin() + (first + count) * 33);
                SearchBatch batch;
                batch.queries = asked.queries;
                batch.count = count;
                batch.k = k;
                if (k == 10) dead[first * 10] = ~0ULL;
                if (k != 1) batch.dead = dead;
                searcher->search(batch, results, pool);
                ASSERT_EQ(results.size(), count);
                for (std::uint32_t q = 0; q < count; q += 1 + count / 5) {
                    expect_same(results[q], brute_force(metric, asked, q, k, batch.dead), q);
                }
            }
        }
    }
}

TEST(ExactSearch, Duplicates)
{
    for (const Metric metric : metrics) {
        Data data = random_data(30000, 40, 32);
        // 100 distinct rows, each 240 times, and one of them 6,000 times more.
        const std::vector<float> distinct = data.rows;
        for (std::size_t i = 0; i < data.rows.size(); ++i) {
            const std::size_t row = i / 32;
            data.rows[i] = distinct[(row < 6000 ? 0 : row % 100) * 32 + i % 32];
        }
        check_search(metric, data, 10);
        std::fill(data.rows.begin(), data.rows.end(), 0.25F);
        check_search(metric, data, 10);
    }
}

TEST(ExactSearch, NearDuplicates)
{
    Data data = random_data(64000, 300, 64);
    const auto noise = gaussian(data.rows.size(), 5, 1e-5F);
    for (std::size_t i = 0; i < data.rows.size(); ++i) data.rows[i] = data.rows[i / 64 % 64 * 64 + i % 64] + noise[i];
    for (std::size_t i = 0; i < data.queries.size(); ++i) {
        data.queries[i] = data.rows[i / 64 % 64 * 64 + i % 64] + 0.5F * noise[i + 640];
    }
    EXPECT_GT(check_search(Metric::l2, data, 10).filtered_again, 0U);
    check_search(Metric::inner_product, data, 10);
    check_search(Metric::cosine, data, 10);
    check_search(Metric::l1, data, 10);
}

// More copies of a row than a slot has entries, spread over the index. Queries equal the row, are near it, or are
// other.
void check_copies(Metric metric, std::uint32_t copies, std::uint32_t asked, std::uint32_t k, RowBitmap dead = {})
{
    constexpr std::uint32_t distinct = 4;
    constexpr std::uint32_t dimensions = 32;
    Data data = random_data(64000, distinct, dimensions);
    const std::vector<float> row(data.rows.begin(), data.rows.begin() + dimensions);
    for (std::uint32_t i = 0; i < copies; ++i) {
        std::copy(row.begin(), row.end(), data.rows.begin() + std::size_t{i} * 3 * dimensions);
    }
    for (std::uint32_t d = 0; d < dimensions; ++d) {
        data.queries[d] = row[d];
        data.queries[dimensions + d] = row[d] + 1e-3F * data.queries[dimensions + d];
        data.queries[2 * dimensions + d] = 2 * row[d];
    }
    if (metric == Metric::cosine) {
        normalise(data.rows, dimensions);
        normalise(data.queries, dimensions);
    }
    const auto searcher = load(metric, data);
    std::vector<float> queries;
    for (std::uint32_t q = 0; q < asked; ++q) {
        const auto first = data.queries.begin() + std::size_t{q % distinct} * dimensions;
        queries.insert(queries.end(), first, first + dimensions);
    }
    SearchBatch batch;
    batch.queries = queries;
    batch.count = asked;
    batch.k = k;
    batch.dead = dead;
    std::vector<std::vector<RowResult>> results;
    ThreadPool pool(1);
    searcher->search(batch, results, pool);
    std::vector<std::vector<RowResult>> expected;
    for (std::uint32_t q = 0; q < std::min(asked, distinct); ++q) {
        expected.push_back(brute_force(metric, data, q, k, dead));
    }
    for (std::uint32_t q = 0; q < asked; ++q) {
        expect_same(results[q], expected[q % distinct], q);
        if (testing::Test::HasFatalFailure()) return;
    }
    const ExactStatistics statistics = exact_statistics(*searcher);
    EXPECT_EQ(statistics.scanned, 0U) << copies << " copies, " << asked << " queries, k " << k;
    EXPECT_GT(statistics.tied, 0U) << copies << " copies, " << asked << " queries, k " << k;
}

TEST(ExactSearch, MoreEqualRowsThanProposals)
{
    for (const Metric metric : metrics) {
        for (const std::uint32_t copies : {5000U, 20000U}) {
            for (const std::uint32_t asked : {1U, 5U, 64U, 1000U}) check_copies(metric, copies, asked, 10);
            check_copies(metric, copies, 300, 100);
        }
        check_copies(metric, 20000, 20, 1000);
    }
}

// Enough slabs for a wait of the host in between.
TEST(ExactSearch, ManyQueriesNearMoreEqualRowsThanProposals)
{
    check_copies(Metric::l2, 20000, 5000, 10);
    check_copies(Metric::cosine, 20000, 5000, 10);
}

TEST(ExactSearch, MoreEqualRowsThanProposalsOfWhichSomeAreDead)
{
    std::vector<std::uint64_t> dead(64000 / 64, 0x0123456789ABCDEFULL);
    for (const std::uint32_t asked : {1U, 64U, 300U}) check_copies(Metric::l2, 20000, asked, 50, dead);
}

TEST(ExactSearch, NothingButEqualRows)
{
    for (const Metric metric : metrics) {
        Data data = random_data(70000, 300, 20);
        std::fill(data.rows.begin(), data.rows.end(), 0.25F);
        check_search(metric, data, 10);
        data.queries.resize(20);
        EXPECT_EQ(check_search(metric, data, 700).scanned, 0U);
    }
}

// Where memory is short, searches take fewer queries at a time, and idle workspaces are freed.
TEST(ExactSearch, AnswersInPiecesWhereMemoryIsShort)
{
    const Data data = random_data(50000, 3000, 64);
    IndexShape shape{};
    shape.method = Method::exact;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = data.dimensions;
    const ArrayShape array = make_array_shape("vectors", ArrayType::f32, data.count(), data.dimensions);
    const std::uint64_t rows = load(Metric::l2, data)->memory_bytes();
    Context tight(0, rows + (std::uint64_t{24} << 20));
    ThreadPool pool(2);
    const auto searcher = make_exact_searcher(tight, shape, {&array, 1});
    searcher->write("vectors", 0, std::as_bytes(std::span(data.rows)));
    searcher->finish_load(pool);
    SearchBatch batch;
    batch.queries = data.queries;
    batch.count = data.asked();
    batch.k = 100;
    std::vector<std::vector<RowResult>> results;
    searcher->search(batch, results, pool);
    ASSERT_EQ(results.size(), data.asked());
    for (std::uint32_t q = 0; q < data.asked(); q += 100) {
        expect_same(results[q], brute_force(Metric::l2, data, q, 100, {}), q);
    }
}

TEST(ExactSearch, OrderedRows)
{
    // Clusters one after the other, each far from the others.
    Data data = random_data(60000, 100, 24);
    for (std::size_t i = 0; i < data.rows.size(); ++i) data.rows[i] += static_cast<float>(i / 24 / 500) * 3;
    for (std::size_t i = 0; i < data.queries.size(); ++i) data.queries[i] += static_cast<float>(i / 24) * 3;
    for (const Metric metric : metrics) check_search(metric, data, 20);
}

TEST(ExactSearch, HugeAndTinyValues)
{
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
        check_search(metric, random_data(9000, 20, 48, 1e36F), 10);
        check_search(metric, random_data(9000, 20, 48, 1e-30F), 10);
        Data outlier = random_data(9000, 20, 48);
        for (std::size_t d = 0; d < 48; ++d) outlier.rows[777 * 48 + d] = 3e38F;
        check_search(metric, outlier, 10);
        Data far = random_data(9000, 20, 48);
        for (float& value : far.queries) value *= 1e20F;
        check_search(metric, far, 10);
    }
}

TEST(ExactSearch, DeadRows)
{
    for (const Metric metric : metrics) {
        const Data data = random_data(20000, 50, 40);
        std::vector<std::uint64_t> dead(20000 / 64 + 1);
        std::mt19937_64 random(3);
        for (auto& word : dead) word = random();
        check_search(metric, data, 10, dead);
        std::fill(dead.begin(), dead.end(), ~0ULL);
        dead[100] = ~0xFFULL;
        check_search(metric, data, 10, dead);
        std::fill(dead.begin(), dead.end(), ~0ULL);
        check_search(metric, data, 10, dead);
    }
}

TEST(ExactSearch, Continuations)
{
    for (const Metric metric : metrics) {
        Data data = random_data(5000, 1, 12);
        std::copy_n(data.rows.begin(), 12 * 500, data.rows.begin() + 12 * 1000);
        if (metric == Metric::cosine) {
            normalise(data.rows, 12);
            normalise(data.queries, 12);
        }
        const auto searcher = load(metric, data);
        SearchBatch batch;
        batch.queries = data.queries;
        batch.count = 1;
        batch.k = 700;
        ThreadPool pool(1);
        RowResult cursor{-INFINITY, 0};
        for (int round = 0; round < 9; ++round) {
            std::vector<RowResult> results;
            searcher->search_exact(batch, cursor.distance, cursor.row, results, pool);
            expect_same(results, brute_force(metric, data, 0, batch.k, {}, cursor), 0);
            if (results.empty()) break;
            cursor = results.back();
        }
    }
}

TEST(ExactSearch, SeveralThreads)
{
    const Data data = random_data(30000, 40, 48);
    const auto searcher = load(Metric::l2, data);
    std::vector<std::thread> threads;
    std::vector<std::vector<std::vector<RowResult>>> results(6);
    for (auto& own : results) {
        threads.emplace_back([&] {
            SearchBatch batch;
            batch.queries = data.queries;
            batch.count = data.asked();
            batch.k = 10;
            ThreadPool pool(1);
            for (int round = 0; round < 20; ++round) searcher->search(batch, own, pool);
        });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& own : results) {
        for (std::uint32_t q = 0; q < data.asked(); ++q) {
            expect_same(own[q], brute_force(Metric::l2, data, q, 10, {}), q);
        }
    }
}

}  // namespace
}  // namespace pgwarp::cuda
