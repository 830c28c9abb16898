// Sets and attributes of matchcount on the device: the answers of the CPU, in every order of equal counts.
#include <gtest/gtest.h>

#include <limits>

#include "matchcount/part_search.h"
#include "methods/matchcount/matchcount.h"
#include "methods/rows/stored_lists.h"
#include "part_fixture.h"
#include "protocol/search_bound.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

constexpr double from_front = -std::numeric_limits<double>::infinity();

IndexShape shape_of(ElementType element)
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(Metric::overlap);
    shape.element = element;
    return shape;
}

// The same index on both devices.
class BothIndexes
{
public:
    BothIndexes(ElementType element, const OwnedRows& rows) : pool_(0)
    {
        // An index without rows has no arrays.
        std::vector<ArrayShape> arrays;
        if (rows.count() > 0) arrays = list_arrays(rows.view());
        cpu_ = matchcount::make_part_searcher(shape_of(element), arrays);
        device_ = cuda::make_part_searcher(shared_context(), shape_of(element), arrays);
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes(array.bytes());
            read_list_array(rows.view(), array.name, 0, bytes);
            cpu_->write(array.name, 0, bytes);
            device_->write(array.name, 0, bytes);
        }
        cpu_->finish_load(pool_);
        device_->finish_load(pool_);
    }

    void expect_same(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> wanted;
        std::vector<std::vector<RowResult>> found;
        cpu_->search(batch, wanted, pool_);
        device_->search(batch, found, pool_);
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < batch.count; ++i) {
            SCOPED_TRACE("query " + std::to_string(i) + ", k " + std::to_string(batch.k));
            ASSERT_NO_FATAL_FAILURE(expect_equal(found[i], wanted[i]));
        }
    }
    // The results behind each result of the first query.
    void expect_same_continuations(const SearchBatch& batch)
    {
        std::vector<RowResult> wanted;
        std::vector<RowResult> found;
        RowResult after{from_front, 0};
        do {
            cpu_->search_exact(batch, after.distance, after.row, wanted, pool_);
            device_->search_exact(batch, after.distance, after.row, found, pool_);
            ASSERT_NO_FATAL_FAILURE(expect_equal(found, wanted));
            if (!wanted.empty()) after = wanted.back();
        } while (!wanted.empty());
    }

    Searcher& device() { return *device_; }
    ThreadPool& pool() { return pool_; }

private:
    static void expect_equal(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
    {
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
            ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        }
    }

    ThreadPool pool_;
    std::unique_ptr<Searcher> cpu_;
    std::unique_ptr<Searcher> device_;
};

SearchBatch batch_of(const OwnedRows& queries, std::uint32_t k)
{
    SearchBatch batch;
    batch.lists = queries.view();
    batch.count = queries.view().count;
    batch.k = k;
    return batch;
}

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
