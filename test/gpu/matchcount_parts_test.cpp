// Sets and attributes of matchcount on the device: the answers of the CPU, in every order of equal counts.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "both_searchers.h"
#include "matchcount/part_search.h"
#include "methods/matchcount/matchcount.h"
#include "part_fixture.h"
#include "protocol/format.h"
#include "protocol/part_rows.h"
#include "protocol/search_bound.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

IndexShape shape_of(ElementType element)
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(Metric::overlap);
    shape.element = element;
    return shape;
}

class BothIndexes : public BothSearchers
{
public:
    BothIndexes(ElementType element, const OwnedRows& rows, cuda::Context& context = shared_context())
    {
        const std::vector<ArrayShape> arrays = arrays_of(rows);
        set(matchcount::make_part_searcher(shape_of(element), arrays),
            cuda::make_part_searcher(context, shape_of(element), arrays));
        load(rows, arrays);
    }
};

std::vector<std::uint64_t> random_dead(std::size_t rows, std::mt19937_64& random)
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    const unsigned one_of = 1 + random() % 5;
    for (std::size_t i = 0; i < rows; ++i)
        if (random() % one_of == 0) set_bit(dead, i);
    return dead;
}

// Searches, with bounds too, and continuations, of `queries` among `rows`.
void expect_same_answers(ElementType element, const OwnedRows& rows, const OwnedRows& queries, std::mt19937_64& random)
{
    BothIndexes both(element, rows);
    const std::vector<std::uint64_t> dead = random_dead(rows.count(), random);
    SearchBatch batch = batch_of(queries, 1 + random() % (random() % 3 == 0 ? 2 * rows.count() + 3 : 12));
    if (random() % 2 == 0) {
        batch.dead = dead;
        batch.dead_version = new_bitmap_version();
    }
    ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    SearchBatch within = batch;
    set_within(&within.settings, 1.5 - static_cast<double>(random() % 12) / 2);
    ASSERT_NO_FATAL_FAILURE(both.expect_same(within));
    if (random() % 4 != 0) return;
    batch.count = 1;
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(batch));
    within.count = 1;
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(within));
}

TEST(DeviceSets, RandomSetsEqualTheCpus)
{
    for (unsigned seed = 0; seed < 150 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed);
        const std::uint64_t universe = 1 + random() % (seed % 3 == 0 ? 5000 : 60);
        const std::size_t rows = random() % (seed % 8 == 0 ? 3 : 800);
        const std::size_t most = 1 + random() % (seed % 7 == 0 ? 600 : 12);
        ASSERT_NO_FATAL_FAILURE(expect_same_answers(ElementType::set, random_sets(rows, most, universe, seed + 1000),
                                                    random_sets(1 + random() % 200, most, universe, seed + 2000),
                                                    random));
    }
}

TEST(DeviceSets, RandomAttributesEqualTheCpus)
{
    for (unsigned seed = 0; seed < 150 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937_64 random(seed);
        const std::size_t names = 1 + random() % 20;
        const std::uint64_t values = 1 + random() % (seed % 3 == 0 ? 5000 : 30);
        const std::size_t rows = random() % (seed % 8 == 0 ? 3 : 800);
        ASSERT_NO_FATAL_FAILURE(
            expect_same_answers(ElementType::attribute_set, random_attribute_sets(rows, names, values, seed + 1000),
                                random_queries(1 + random() % 200, 12, names, values, seed + 2000), random));
    }
}

// Ranges of 2^16 rows, several of them, and counters of 8 and 16 bits in one batch.
TEST(DeviceSets, ManyRowsEqualTheCpus)
{
    std::mt19937_64 random(7);
    BothIndexes sets(ElementType::set, random_sets(200000, 20, 3000, 1));
    std::vector<Set> asked;
    for (int i = 0; i < 500; ++i) asked.push_back(random_set(random, i % 50 == 0 ? 2000 : 30, 3000));
    const OwnedRows queries = rows_of_parts(asked);
    for (const std::uint32_t k : {1, 10, 3000}) ASSERT_NO_FATAL_FAILURE(sets.expect_same(batch_of(queries, k)));
    BothIndexes attributes(ElementType::attribute_set, random_attribute_sets(200000, 14, 1000, 2));
    const OwnedRows ranges = random_queries(500, 14, 14, 1000, 3);
    for (const std::uint32_t k : {1, 10, 3000}) ASSERT_NO_FATAL_FAILURE(attributes.expect_same(batch_of(ranges, k)));
}

// Ranges of rows without any part, at the front and all of them.
TEST(DeviceSets, RowsWithoutPartsEqualTheCpus)
{
    std::mt19937_64 random(11);
    for (const std::size_t others : {0, 1, 70000}) {
        std::vector<Set> sets(140000);
        for (std::size_t i = 0; i < others; ++i) sets.push_back(random_set(random, 6, 50));
        BothIndexes both(ElementType::set, rows_of_parts(sets));
        const OwnedRows queries = random_sets(20, 10, 60, 12);
        const std::vector<std::uint64_t> dead = random_dead(sets.size(), random);
        for (const std::uint32_t k : {1, 10, 65536}) {
            SearchBatch batch = batch_of(queries, k);
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            batch.dead = dead;
            batch.dead_version = new_bitmap_version();
            ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
        }
    }
}

// Counters of 8 and 16 bits in one batch.
TEST(DeviceSets, LongSetsEqualTheCpus)
{
    std::mt19937_64 random(13);
    std::vector<Set> sets(3000);
    for (Set& set : sets) set = random_set(random, 20, 40000);
    for (const std::size_t row : {0, 1, 1777, 2999})
        for (std::uint64_t part = row; part < 30000 + row; ++part) sets[row].insert(part);
    BothIndexes both(ElementType::set, rows_of_parts(sets));
    std::vector<Set> asked = {sets[1], {}, sets[1777], sets[5]};
    for (int i = 0; i < 40; ++i) asked.push_back(random_set(random, i % 3 == 0 ? 3000 : 30, 50000));
    const OwnedRows queries = rows_of_parts(asked);
    for (const std::uint32_t k : {1, 3, 5000}) ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
    SearchBatch batch = batch_of(queries, 1000);
    set_within(&batch.settings, -28999.5);
    ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    batch.count = 1;
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(batch));
    batch.settings = {};
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(batch));
}

// Counters of 32 bits among others: an item that a query repeats counts each time.
TEST(DeviceSets, RepeatedItemsEqualTheCpus)
{
    std::mt19937_64 random(15);
    BothIndexes both(ElementType::attribute_set, random_attribute_sets(3000, 20, 100, 16));
    std::vector<AttributeQuery> asked = {AttributeQuery(8000, {spread(3, true), {{10, 89}}})};
    for (int i = 0; i < 30; ++i) asked.push_back(random_query(random, 12, 20, 100));
    const OwnedRows queries = rows_of_parts(asked);
    for (const std::uint32_t k : {1, 3, 5000}) ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
    SearchBatch batch = batch_of(queries, 1000);
    batch.count = 1;
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(batch));
}

// A device with 64 KB of shared memory for a block.
TEST(DeviceSets, SmallDevicesEqualTheCpu)
{
    cuda::Context context(0, std::uint64_t{1} << 30);
    context.limit_shared_bytes(65536);
    for (const std::size_t most : {10, 400}) {
        BothIndexes both(ElementType::set, random_sets(most == 10 ? 140000 : 9000, most, 3000, 31), context);
        for (const std::size_t count : {1, 70}) {
            const OwnedRows queries = random_sets(count, 2 * most, 3000, 32);
            for (const std::uint32_t k : {1, 100, 9000})
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
        }
    }
}

// More queries and more results than a chunk has.
TEST(DeviceSets, BatchesOfManyChunksEqualTheCpus)
{
    std::mt19937_64 random(17);
    BothIndexes both(ElementType::set, random_sets(70000, 8, 400, 18));
    const std::vector<std::uint64_t> dead = random_dead(70000, random);
    const OwnedRows many = random_sets(9000, 6, 420, 19);
    const OwnedRows some = random_sets(150, 6, 420, 20);
    for (SearchBatch batch : {batch_of(many, 2), batch_of(some, 65536)}) {
        batch.dead = dead;
        batch.dead_version = new_bitmap_version();
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    }
}

// Threads with other k, bounds and dead rows each.
TEST(DeviceSets, SearchesAtATimeEqualTheCpus)
{
    const OwnedRows rows = random_sets(80000, 8, 300, 21);
    BothIndexes both(ElementType::set, rows);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&both, number] {
            std::mt19937_64 random(number);
            const OwnedRows queries = random_sets(1 + 30 * number, 6, 320, 30 + number);
            for (int round = 0; round < 8; ++round) {
                const std::vector<std::uint64_t> dead = random_dead(80000, random);
                SearchBatch batch = batch_of(queries, 1 + random() % 300);
                if (round % 2 == 0) set_within(&batch.settings, -static_cast<double>(random() % 4));
                batch.dead = dead;
                batch.dead_version = new_bitmap_version();
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

// With any budget a search is answered, or fails and leaves no memory taken.
TEST(DeviceSets, ShortMemoryIsGivenBack)
{
    const OwnedRows rows = random_sets(100000, 10, 2000, 22);
    const OwnedRows queries = random_sets(300, 10, 2000, 23);
    int loads = 0;
    int answers = 0;
    for (const std::uint64_t mebibytes : {1, 4, 8, 12, 14, 16, 20, 24, 40}) {
        SCOPED_TRACE(std::to_string(mebibytes) + " MiB");
        cuda::Context context(0, mebibytes << 20);
        try {
            BothIndexes both(ElementType::set, rows, context);
            ++loads;
            for (const std::uint32_t k : {3000, 10}) ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
            SearchBatch one = batch_of(queries, 20000);
            one.count = 1;
            ASSERT_NO_FATAL_FAILURE(both.expect_same_continuations(one));
            ++answers;
        } catch (const std::bad_alloc&) {
        }
        EXPECT_EQ(context.pool().used(), 0U);
    }
    EXPECT_GT(answers, 0);
    EXPECT_LT(loads, 9);
}

// Threads whose searches have not enough memory together: each is answered, or fails.
TEST(DeviceSets, SearchesShareShortMemory)
{
    const OwnedRows rows = random_sets(100000, 10, 2000, 41);
    cuda::Context context(0, std::uint64_t{40} << 20);
    std::atomic<int> answers{0};
    {
        BothIndexes both(ElementType::set, rows, context);
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 6; ++number)
            threads.emplace_back([&both, &answers, number] {
                std::mt19937_64 random(number);
                const OwnedRows queries = random_sets(1 + 60 * number, 10, 2000, 42 + number);
                for (int round = 0; round < 12; ++round) {
                    const std::vector<std::uint64_t> dead = random_dead(100000, random);
                    SearchBatch batch = batch_of(queries, 1 + random() % 3000);
                    batch.dead = dead;
                    batch.dead_version = new_bitmap_version();
                    try {
                        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
                        ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch, {-2, 500}));
                        ++answers;
                    } catch (const std::bad_alloc&) {
                    }
                }
            });
        for (std::thread& thread : threads) thread.join();
        SearchBatch batch = batch_of(rows, 10);
        batch.count = 50;
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    }
    EXPECT_GT(answers, 0);
    EXPECT_EQ(context.pool().used(), 0U);
}

// A continuation takes the memory that other searches left idle.
TEST(DeviceSets, ContinuationsTakeIdleMemory)
{
    cuda::Context context(0, std::uint64_t{1} << 30);
    BothIndexes both(ElementType::set, random_sets(400000, 4, 2000, 24), context);
    const OwnedRows queries = random_sets(1, 8, 2000, 25);
    SearchBatch inner = batch_of(queries, 500);
    SearchBatch batch = inner;
    std::vector<std::vector<RowResult>> found;
    std::vector<std::vector<RowResult>> found_within;
    OverlappedWork work([&] { both.device().search(inner, found_within, both.pool()); });
    batch.overlapped_work = &work;
    both.device().search(batch, found, both.pool());
    EXPECT_EQ(found[0].size(), found_within[0].size());
    const std::uint64_t idle = context.pool().used_by_name().at("matchcount workspace") / 2;  // of each search
    const std::uint64_t wanted = 400000 * 2 * sizeof(std::uint32_t);
    ASSERT_GT(wanted, idle + idle / 2);
    const cuda::Context::Lease stream = context.lease(cuda::Priority::search);
    const std::uint64_t left = wanted - idle - idle / 2;
    const cuda::DeviceArray<std::byte> others(context.pool(), context.pool().room() - left, "test", stream);
    ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(inner, {-1, 0}));
}

// Sets of 65,536 words and queries of as many, one row, and as many results as any search has.
TEST(DeviceSets, LargestListsEqualTheCpus)
{
    std::mt19937_64 random(33);
    constexpr std::size_t most = max_list_words / set_words;
    Set largest;
    while (largest.size() < most) largest.insert(random() % (8 * most));
    Set others = largest;
    others.erase(others.begin());
    others.insert(9 * most);
    for (const std::size_t more : {0, 70000}) {
        std::vector<Set> sets = {largest};
        if (more > 0) sets.push_back(others);
        for (std::size_t i = 0; i < more; ++i) sets.push_back(random_set(random, 3, 8 * most));
        BothIndexes both(ElementType::set, rows_of_parts(sets));
        const OwnedRows queries =
            rows_of_parts(std::vector<Set>{largest, others, {}, random_set(random, 20000, 8 * most)});
        for (const std::uint32_t k : {1U, 100U, max_k}) ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
        SearchBatch batch = batch_of(queries, max_k);
        ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch, {-static_cast<double>(most), 0}));
        ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch, {0, 0xffffffff}));
        set_within(&batch.settings, -static_cast<double>(most - 1));
        ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
    }
}

// Cursors between two counts and beyond all of them.
TEST(DeviceSets, ContinuationsBehindAnyDistance)
{
    BothIndexes both(ElementType::set, random_sets(500, 8, 40, 34));
    const OwnedRows queries = random_sets(1, 20, 40, 35);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double distance : {-1e300, -2147483648.0, -3.0, -2.5, -0.5, -0.0, 0.0, 0.5, infinity})
        for (const std::uint32_t row : {0U, 250U, 0xffffffffU})
            ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch_of(queries, 20), {distance, row}))
                << distance << ", " << row;
}

// A search that is cancelled while the device works leaves nothing behind: the next one is right.
TEST(DeviceSets, SearchesMayBeCancelledAnyTime)
{
    cuda::Context context(0, std::uint64_t{1} << 30);
    BothIndexes both(ElementType::set, random_sets(300000, 12, 300, 36), context);
    const OwnedRows many = random_sets(20000, 12, 320, 37);
    both.expect_same_between_cancelled(batch_of(many, 20), 10);
}

// Tombstones grow from search to search of several threads, which share a version now and then.
TEST(DeviceSets, TombstonesGrowUnderSearches)
{
    const OwnedRows rows = random_sets(70000, 8, 300, 38);
    BothIndexes both(ElementType::set, rows);
    std::mt19937_64 random(39);
    std::vector<std::vector<std::uint64_t>> dead(12, std::vector<std::uint64_t>((70000 + 63) / 64));
    std::vector<std::uint64_t> versions;
    for (std::size_t i = 0; i < dead.size(); ++i) {
        if (i > 0) dead[i] = dead[i - 1];
        for (int more = 0; more < 4000; ++more) set_bit(dead[i], random() % 70000);
        versions.push_back(new_bitmap_version());
    }
    const OwnedRows queries = random_sets(40, 6, 320, 40);
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&] {
            for (std::size_t at = next++; at < 48; at = next++) {
                const std::size_t i = at / 4 - (at % 5 == 0 && at >= 4 ? 1 : 0);  // some searches began earlier
                SearchBatch batch = batch_of(queries, 50);
                batch.dead = dead[i];
                batch.dead_version = versions[i];
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(DeviceSets, CostsGrowWithQueries)
{
    BothIndexes both(ElementType::set, random_sets(1000, 5, 20, 1));
    const OwnedRows usual = random_sets(1, 2, 20, 2);
    Set many;
    for (std::uint64_t part = 0; part < 5000; ++part) many.insert(part);
    const OwnedRows longer = rows_of_parts(std::vector<Set>{many});
    EXPECT_GT(both.device().search_cost(batch_of(longer, 1)), 100 * both.device().search_cost(batch_of(usual, 1)));
}

TEST(DeviceSets, CancelledSearchesThrow)
{
    BothIndexes both(ElementType::set, random_sets(100, 5, 20, 1));
    const OwnedRows queries = random_sets(1, 5, 20, 2);
    CancelToken cancel;
    cancel.cancel();
    SearchBatch batch = batch_of(queries, 1);
    batch.cancel = &cancel;
    std::vector<std::vector<RowResult>> found;
    EXPECT_THROW(both.device().search(batch, found, both.pool()), Cancelled);
    std::vector<RowResult> behind;
    EXPECT_THROW(both.device().search_exact(batch, -1, 5, behind, both.pool()), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test
