// Sparse vectors of matchcount on the device: the answers of the CPU, in every order of ties.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "both_searchers.h"
#include "matchcount/sparse_search.h"
#include "methods/matchcount/matchcount.h"
#include "protocol/format.h"
#include "protocol/search_bound.h"
#include "shared_context.h"
#include "sparse_fixture.h"

namespace pgwarp::test
{
namespace
{

using cuda::SparseSearchTuning;
using cuda::matchcount::SparseTuning;

constexpr Metric metrics[] = {Metric::inner_product, Metric::cosine, Metric::l2};
constexpr std::uint32_t largest_dimensions = 1000000000;

IndexShape shape_of(Metric metric)
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.element = ElementType::sparse;
    shape.dimensions = largest_dimensions;
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

enum class Values { positive, signed_ones, ties, every_size };

float random_value(std::mt19937_64& random, Values values)
{
    const double uniform = static_cast<double>(random() % 1000003 + 1) / 1000003;
    const int sign = random() % 3 == 0 ? -1 : 1;
    switch (values) {
        case Values::positive:
            return static_cast<float>(uniform);
        case Values::signed_ones:
            return static_cast<float>(sign * uniform);
        case Values::ties:
            return static_cast<float>(sign * static_cast<int>(1 + random() % 4)) / 4;
        case Values::every_size:
            return static_cast<float>(sign * std::ldexp(uniform, static_cast<int>(random() % 24) - 12));
    }
    return 0;
}

// Indices follow a law by which the first are frequent.
Sparse random_sparse(std::mt19937_64& random, std::size_t least, std::size_t most, std::uint64_t universe,
                     Values values)
{
    Sparse vector;
    for (std::size_t left = least + random() % (most - least + 1); left > 0; --left) {
        const std::uint64_t bound = 1 + random() % universe;
        vector[static_cast<std::uint32_t>(random() % bound)] = random_value(random, values);
    }
    return vector;
}

OwnedRows random_rows(std::size_t count, std::size_t least, std::size_t most, std::uint64_t universe, Values values,
                      std::mt19937_64& random)
{
    std::vector<Sparse> vectors;
    for (std::size_t i = 0; i < count; ++i) vectors.push_back(random_sparse(random, least, most, universe, values));
    return rows_of_sparse(vectors);
}

std::vector<std::uint64_t> random_dead(std::size_t rows, std::mt19937_64& random)
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    const unsigned one_of = 1 + random() % 5;
    for (std::size_t i = 0; i < rows; ++i)
        if (random() % one_of == 0) set_bit(dead, i);
    return dead;
}

SparseTuning random_tuning(std::mt19937_64& random)
{
    return {64U << random() % 3, 256U << random() % 5};
}

// Searches, some of which leave out dead rows or have a bound, and a continuation.
void expect_same_answers(BothIndexes& both, const OwnedRows& rows, const OwnedRows& queries, std::mt19937_64& random)
{
    const std::vector<std::uint64_t> dead = random_dead(rows.count(), random);
    for (const std::uint32_t k : {1U, static_cast<std::uint32_t>(2 + random() % 20), 128U}) {
        SearchBatch batch = batch_of(queries, k);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        batch.dead = dead;
        batch.dead_version = new_bitmap_version();
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        set_within(&batch.settings, 1.5 - static_cast<double>(random() % 12) / 2);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        batch.count = 1;
        ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch, {-0.25, 3}));
    }
}

TEST(DeviceSparse, FewRowsEqualTheCpus)
{
    for (unsigned seed = 0; seed < 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed);
        const auto values = static_cast<Values>(seed % 4);
        const std::uint64_t universe = 1 + random() % (seed % 3 == 0 ? 5000 : 100);
        const std::size_t most = 1 + random() % (seed % 7 == 0 ? 300 : 20);
        const OwnedRows rows = random_rows(random() % (seed % 8 == 0 ? 3 : 900), 0, most, universe, values, random);
        const OwnedRows queries = random_rows(1 + random() % 12, 0, most, universe + 20, values, random);
        BothIndexes both(metrics[seed % 3], rows, random_tuning(random));
        ASSERT_NO_FATAL_FAILURE(expect_same_answers(both, rows, queries, random));
    }
}

// Rows enough for samples, ranges and chunks of several slices.
TEST(DeviceSparse, ManyRowsEqualTheCpus)
{
    std::uint64_t queries_of_device = 0;
    std::uint64_t by_host = 0;
    for (unsigned seed = 0; seed < 12 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed + 100);
        const auto values = static_cast<Values>(seed % 2);
        const OwnedRows rows = random_rows(20000 + random() % 30000, 10, 30, 3000, values, random);
        const OwnedRows queries = random_rows(seed % 4 == 0 ? 300 : 1 + random() % 60, 10, 40, 3100, values, random);
        SparseSearchTuning search_tuning;
        if (seed % 3 == 0) search_tuning.chunk_bytes = 1 << 20;
        BothIndexes both(metrics[seed % 3], rows, random_tuning(random), search_tuning);
        SearchBatch batch = batch_of(queries, 10);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        EXPECT_EQ(both.statistics().queries, queries.count());
        EXPECT_LE(both.statistics().by_host * 4, queries.count());
        queries_of_device += both.statistics().queries;
        by_host += both.statistics().by_host;
        if (seed % 4 == 0) continue;
        ASSERT_NO_FATAL_FAILURE(expect_same_answers(both, rows, queries, random));
    }
    // The device answers nearly all of these.
    EXPECT_LE(by_host * 20, queries_of_device);
}

// Few proposals, and scores that are far from distances, as sums of lists leave out what is negative.
TEST(DeviceSparse, FewProposalsEqualTheCpus)
{
    for (unsigned seed = 0; seed < 6 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed + 200);
        const OwnedRows rows = random_rows(30000, 10, 30, 3000, Values::signed_ones, random);
        const OwnedRows queries = random_rows(seed % 2 == 0 ? 400 : 30, 10, 40, 3100, Values::signed_ones, random);
        SparseSearchTuning search_tuning;
        search_tuning.keep = 5;
        BothIndexes both(metrics[seed % 3], rows, {64, 1024}, search_tuning);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 5)));
    }
}

// Copies of rows: many equal distances, more than the device has places for.
TEST(DeviceSparse, EqualRowsComeInOrder)
{
    std::mt19937_64 random(300);
    for (const Metric metric : metrics) {
        std::vector<Sparse> some;
        for (int i = 0; i < 7; ++i) some.push_back(random_sparse(random, 5, 20, 200, Values::ties));
        std::vector<Sparse> vectors;
        for (int i = 0; i < 20000; ++i) vectors.push_back(some[random() % some.size()]);
        const OwnedRows rows = rows_of_sparse(vectors);
        BothIndexes both(metric, rows);
        const OwnedRows queries = random_rows(20, 1, 20, 200, Values::ties, random);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 30)));
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(rows_of_sparse(some), 128)));
    }
}

// Values near the limits of float32, rows and queries without elements, and long queries.
TEST(DeviceSparse, OddVectorsEqualTheCpus)
{
    constexpr float odd[] = {1e-45F, -1e-45F, 3e38F, -3e38F, 1, -1e-20F, 1e20F, 65504, 1e-8F};
    for (unsigned seed = 0; seed < 24 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed + 400);
        const unsigned kinds = seed % 4 == 0 ? 9 : 1 + random() % 9;
        const unsigned first = random() % 9;
        const auto make = [&](std::size_t count, std::size_t most) {
            std::vector<Sparse> vectors(count);
            for (Sparse& vector : vectors)
                for (std::size_t left = random() % most; left > 0; --left)
                    vector[static_cast<std::uint32_t>(random() % (1 + random() % 4000))] =
                        odd[(first + random() % kinds) % 9];
            return rows_of_sparse(vectors);
        };
        const OwnedRows rows = make(seed % 2 == 0 ? 500 : 9000, 12);
        const OwnedRows queries = make(12, seed % 3 == 0 ? 3000 : 12);
        BothIndexes both(metrics[seed % 3], rows, random_tuning(random));
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 10)));
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 200)));
    }
}

// Indices up to the largest, and more terms than columns in every row.
TEST(DeviceSparse, LargeIndicesEqualTheCpus)
{
    std::mt19937_64 random(500);
    const auto make = [&](std::size_t count) {
        std::vector<Sparse> vectors(count);
        for (Sparse& vector : vectors)
            for (int i = 0; i < 100; ++i)
                vector[static_cast<std::uint32_t>(random() % 300 * 3333331 % largest_dimensions)] =
                    random_value(random, Values::positive);
        return rows_of_sparse(vectors);
    };
    for (const Metric metric : metrics) {
        BothIndexes both(metric, make(12000), {64, 512});
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(make(40), 10)));
        EXPECT_LE(both.statistics().by_host, 4U);
    }
}

TEST(DeviceSparse, PortableTilesEqualTheCpus)
{
    std::mt19937_64 random(600);
    cuda::Context context(0, 0);
    context.limit_shared_bytes(std::size_t{64} << 10);
    const OwnedRows rows = random_rows(30000, 10, 30, 3000, Values::positive, random);
    const OwnedRows queries = random_rows(100, 10, 40, 3100, Values::positive, random);
    for (const Metric metric : metrics) {
        BothIndexes both(metric, rows, {256, 1024}, {}, context);
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 10)));
    }
}

TEST(DeviceSparse, CertainRowsEqualTheCpus)
{
    std::mt19937_64 random(700);
    const OwnedRows rows = random_rows(3000, 1, 30, 300, Values::ties, random);
    const OwnedRows queries = random_rows(5, 1, 30, 300, Values::ties, random);
    for (const Metric metric : metrics) {
        BothIndexes both(metric, rows);
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = 0; i < 3000; i += 1 + random() % 3) numbers.push_back(i);
        const std::vector<RowList> lists(queries.count(), RowList(numbers));
        ASSERT_NO_FATAL_FAILURE(both.expect_same_among(batch_of(queries, 10), lists));
    }
}

// With any budget a search is answered, or fails and leaves no memory taken.
TEST(DeviceSparse, ShortMemoryIsGivenBack)
{
    std::mt19937_64 random(800);
    const OwnedRows rows = random_rows(30000, 10, 30, 3000, Values::positive, random);
    const OwnedRows queries = random_rows(600, 10, 40, 3100, Values::positive, random);
    int answers = 0;
    for (const std::uint64_t mebibytes : {8, 32, 40, 60, 100, 160}) {
        SCOPED_TRACE(std::to_string(mebibytes) + " MiB");
        cuda::Context context(0, mebibytes << 20);
        try {
            BothIndexes both(Metric::inner_product, rows, {}, {}, context);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, 10)));
            ++answers;
        } catch (const std::bad_alloc&) {
        }
        EXPECT_EQ(context.pool().used(), 0U);
    }
    EXPECT_GT(answers, 0);
    EXPECT_LT(answers, 6);
}

TEST(DeviceSparse, ThreadsShareAnIndex)
{
    std::mt19937_64 random(900);
    const OwnedRows rows = random_rows(30000, 10, 30, 3000, Values::positive, random);
    BothIndexes both(Metric::inner_product, rows);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&both, number] {
            std::mt19937_64 own(number);
            for (int round = 0; round < 6; ++round) {
                const OwnedRows queries = random_rows(1 + own() % 40, 10, 40, 3100, Values::positive, own);
                const std::vector<std::uint64_t> dead = random_dead(30000, own);
                SearchBatch batch = batch_of(queries, 1 + own() % 30);
                batch.dead = dead;
                batch.dead_version = new_bitmap_version();
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(DeviceSparse, CancelledSearchesThrow)
{
    std::mt19937_64 random(1000);
    BothIndexes both(Metric::inner_product, random_rows(100, 1, 5, 20, Values::positive, random));
    const OwnedRows queries = random_rows(1, 1, 5, 20, Values::positive, random);
    CancelToken cancel;
    cancel.cancel();
    SearchBatch batch = batch_of(queries, 1);
    batch.cancel = &cancel;
    std::vector<std::vector<RowResult>> found;
    EXPECT_THROW(both.device().search(batch, found, both.pool()), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test
