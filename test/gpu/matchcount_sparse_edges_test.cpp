// Sparse vectors on the device at the limits of its form: numbers of rows about those of tiles, slices and proposals,
// ranges that begin within slices, queries of as many elements as are served, and searches that end early.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "both_searchers.h"
#include "matchcount/sparse_search.h"
#include "methods/matchcount/matchcount.h"
#include "protocol/format.h"
#include "shared_context.h"
#include "sparse_fixture.h"

namespace pgwarp::test
{
namespace
{

using cuda::SparseSearchTuning;
using cuda::matchcount::SparseTuning;

constexpr Metric metrics[] = {Metric::inner_product, Metric::cosine, Metric::l2};

IndexShape shape_of(Metric metric)
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.element = ElementType::sparse;
    shape.dimensions = 1000000000;
    return shape;
}

class BothIndexes : public BothSearchers
{
public:
    BothIndexes(Metric metric, const OwnedRows& rows, const SparseTuning& tuning = {},
                const SparseSearchTuning& search_tuning = {}, cuda::Context& context = shared_context())
    {
        const std::vector<ArrayShape> arrays = arrays_of(rows);
        set(matchcount::make_sparse_searcher(shape_of(metric), arrays),
            cuda::make_sparse_searcher(context, shape_of(metric), arrays, tuning, search_tuning));
        load(rows, arrays);
    }
    cuda::SparseStatistics statistics() { return cuda::sparse_statistics(device()); }
};

// `elements` elements of a universe, of which the first are frequent.
OwnedRows make_rows(std::size_t count, std::size_t elements, std::uint64_t universe, bool positive, bool ties,
                    std::mt19937_64& random)
{
    std::vector<Sparse> vectors(count);
    for (Sparse& vector : vectors) {
        vector = random_sparse(random, elements, universe, ties);
        if (positive)
            for (auto& [index, value] : vector) value = std::fabs(value);
    }
    return rows_of_sparse(vectors);
}

// All rows are dead but those listed.
std::vector<std::uint64_t> dead_but(std::size_t rows, std::initializer_list<std::size_t> alive)
{
    std::vector<std::uint64_t> dead((rows + 63) / 64, ~std::uint64_t{0});
    for (const std::size_t row : alive) dead[row / 64] &= ~(std::uint64_t{1} << row % 64);
    return dead;
}

void expect_same_with(BothIndexes& both, SearchBatch batch, RowBitmap dead)
{
    batch.dead = dead;
    batch.dead_version = new_bitmap_version();
    ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
}

TEST(DeviceSparseEdges, RowsAboutTilesAndSlices)
{
    std::mt19937_64 random(1);
    unsigned turn = 0;
    for (const std::size_t count :
         {1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8193}) {
        SCOPED_TRACE(std::to_string(count) + " rows");
        const bool ties = turn % 2 == 0;
        const OwnedRows rows = make_rows(count, 12, 400, turn % 3 != 0, ties, random);
        const OwnedRows queries = make_rows(turn % 4 == 0 ? 130 : 5, 14, 420, turn % 3 != 0, ties, random);
        SparseSearchTuning search_tuning;
        search_tuning.growth = 2 + turn % 4;
        BothIndexes both(metrics[turn % 3], rows, {64, 256U << turn % 6}, search_tuning);
        for (const std::uint32_t k : {1U, 127U, 128U, 129U, static_cast<std::uint32_t>(count + 3)}) {
            const SearchBatch batch = batch_of(queries, k);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            ASSERT_NO_FATAL_FAILURE(expect_same_with(both, batch, dead_but(count, {})));
            ASSERT_NO_FATAL_FAILURE(expect_same_with(both, batch, dead_but(count, {count - 1})));
        }
        ++turn;
    }
}

// Ranges grow slowly, so most begin within a slice, and chunks have one slice each.
TEST(DeviceSparseEdges, RangesBeginWithinSlices)
{
    std::mt19937_64 random(2);
    for (unsigned turn = 0; turn < 9; ++turn) {
        SCOPED_TRACE("turn " + std::to_string(turn));
        const OwnedRows rows = make_rows(40000 + random() % 30000, 25, 3000, turn % 2 == 0, false, random);
        const OwnedRows queries = make_rows(std::size_t{1} + 64 * (turn % 3), 30, 3100, turn % 2 == 0, false, random);
        SparseSearchTuning search_tuning;
        search_tuning.growth = 2 + turn % 4;
        search_tuning.keep = 20;
        if (turn % 3 != 2) search_tuning.chunk_bytes = 1;
        BothIndexes both(metrics[turn % 3], rows, {64U << turn % 3, 8192U >> turn % 4}, search_tuning);
        const SearchBatch batch = batch_of(queries, 1 + turn * 2);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        std::vector<std::uint64_t> dead((rows.count() + 63) / 64);
        for (std::size_t i = 0; i < rows.count(); ++i)
            if (random() % 16 != 0) set_bit(dead, i);
        ASSERT_NO_FATAL_FAILURE(expect_same_with(both, batch, dead));
    }
}

// More queries are filtered again than are searched together.
TEST(DeviceSparseEdges, ManyQueriesAreFilteredAgain)
{
    std::mt19937_64 random(3);
    const OwnedRows rows = make_rows(30000, 25, 3000, false, false, random);
    const OwnedRows queries = make_rows(700, 30, 3100, false, false, random);
    for (const Metric metric : metrics) {
        SparseSearchTuning search_tuning;
        search_tuning.keep = 12;
        BothIndexes both(metric, rows, {64, 2048}, search_tuning);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 10)));
        // Under the others most proofs hold.
        if (metric == Metric::l2) {
            EXPECT_GT(both.statistics().filtered_again, 128U);
        }
    }
}

// Sums of addends come near to their limit, and weights differ by many orders of magnitude.
TEST(DeviceSparseEdges, QueriesOfAsManyElementsAsAreServed)
{
    std::mt19937_64 random(4);
    const auto vector_of = [&](std::size_t elements, bool equal, float largest) {
        Sparse vector;
        while (vector.size() < elements) {
            const auto index = static_cast<std::uint32_t>(random() % 6000);
            vector[index] = equal ? 1.0F : static_cast<float>(std::ldexp(1.0, -static_cast<int>(random() % 90)));
        }
        vector.begin()->second = largest;
        return vector;
    };
    for (const Metric metric : metrics) {
        std::vector<Sparse> vectors;
        for (int i = 0; i < 3000; ++i)
            vectors.push_back(vector_of(i % 500 == 0 ? 5500 : random() % 200, i % 2 == 0, i % 3 == 0 ? -1.0F : 4.0F));
        BothIndexes both(metric, rows_of_sparse(vectors), {64, 1024});
        std::vector<Sparse> queries;
        for (const std::size_t elements : {0, 1, 2, 1023, 1024, 1025, 5900})
            for (const bool equal : {false, true}) queries.push_back(vector_of(elements, equal, equal ? 1 : 1000));
        for (const std::uint32_t k : {1U, 20U, 128U})
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(rows_of_sparse(queries), k)));
    }
}

// Lists leave out what is negative: nearest are the rows that share least.
TEST(DeviceSparseEdges, NothingButNegativeProducts)
{
    std::mt19937_64 random(5);
    std::vector<Sparse> vectors(20000);
    for (Sparse& vector : vectors)
        while (vector.size() < 20) {
            const auto index = static_cast<std::uint32_t>(random() % (1 + random() % 2000));
            vector[index] = -std::fabs(random_value(random, false));
        }
    const OwnedRows queries = make_rows(90, 40, 2000, true, false, random);
    for (const Metric metric : metrics) {
        BothIndexes both(metric, rows_of_sparse(vectors), {64, 512});
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 10)));
    }
}

// Terms that one row has each: most lists are empty in every slice but one.
TEST(DeviceSparseEdges, TermsOfOneRow)
{
    std::mt19937_64 random(6);
    std::vector<Sparse> vectors(5000);
    for (std::uint32_t i = 0; i < vectors.size(); ++i) {
        for (std::uint32_t j = 0; j < 8; ++j) vectors[i][1000 + 8 * i + j] = 1.0F + static_cast<float>(random() % 9);
        vectors[i][i % 70] = 0.5F;
    }
    for (const Metric metric : metrics) {
        BothIndexes both(metric, rows_of_sparse(vectors), {64, 256});
        std::vector<Sparse> queries;
        for (int i = 0; i < 140; ++i) queries.push_back(vectors[random() % vectors.size()]);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(rows_of_sparse(queries), 3)));
    }
}

TEST(DeviceSparseEdges, SearchesMayBeCancelledAnyTime)
{
    std::mt19937_64 random(7);
    const OwnedRows rows = make_rows(40000, 25, 3000, false, false, random);
    BothIndexes both(Metric::inner_product, rows);
    const OwnedRows queries = make_rows(1500, 30, 3100, false, false, random);
    ASSERT_NO_FATAL_FAILURE(both.expect_same_between_cancelled(batch_of(queries, 10), 20));
}

TEST(DeviceSparseEdges, SearchesShareShortMemory)
{
    std::mt19937_64 random(8);
    const OwnedRows rows = make_rows(30000, 25, 3000, true, false, random);
    cuda::Context context(0, std::uint64_t{100} << 20);
    std::atomic<int> answers{0};
    {
        BothIndexes both(Metric::inner_product, rows, {}, {}, context);
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 6; ++number)
            threads.emplace_back([&both, &answers, number] {
                std::mt19937_64 own(number);
                const OwnedRows queries = make_rows(1 + 70 * number, 30, 3100, true, false, own);
                for (int round = 0; round < 6; ++round) {
                    std::vector<std::uint64_t> dead(30000 / 64 + 1);
                    for (std::size_t i = own() % 7; i < 30000; i += 1 + own() % 9) set_bit(dead, i);
                    try {
                        ASSERT_NO_FATAL_FAILURE(expect_same_with(both, batch_of(queries, 1 + own() % 40), dead));
                        ++answers;
                    } catch (const std::bad_alloc&) {
                    }
                }
            });
        for (std::thread& thread : threads) thread.join();
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(make_rows(40, 30, 3100, true, false, random), 10)));
    }
    EXPECT_GT(answers, 0);
    EXPECT_EQ(context.pool().used(), 0U);
    for (const auto& [name, bytes] : context.pool().used_by_name()) EXPECT_EQ(bytes, 0U) << name;
}

}  // namespace
}  // namespace pgwarp::test
