// Dead rows of every method on the device: their bitmap is cached by its version and never compared.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exact/exact.h"
#include "graph/graph.h"
#include "ivfadc/ivfadc.h"
#include "methods/arrays.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t row_count = 3000;
constexpr std::size_t width = 16;

using Bits = std::vector<std::uint64_t>;

std::unique_ptr<Searcher> on_device(const Index& index, Method method, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const ParameterList options = index.builder->effective_options();
    cuda::Context& context = shared_context();
    auto searcher = method == Method::exact    ? cuda::make_exact_searcher(context, index.shape, arrays)
                    : method == Method::ivfadc ? cuda::ivfadc::make_searcher(index.shape, options, arrays, context)
                                               : cuda::graph::make_searcher(index.shape, options, arrays, context);
    for (const ArrayShape& array : arrays) searcher->write(array.name, 0, index.contents(array));
    searcher->finish_load(pool);
    return searcher;
}

class Tombstones : public testing::TestWithParam<Method>
{
protected:
    Tombstones() : rows(random_rows(row_count, width, 3)), index(GetParam(), Metric::l2, width, rows, {}, pool)
    {
        searcher = on_device(index, GetParam(), pool);
    }

    // The nearest rows of row `asked`, which is the first query of a batch of `count`.
    std::vector<RowResult> ask(std::size_t asked, const Bits& dead, std::uint64_t version, std::size_t count = 1) const
    {
        std::vector<float> queries;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = (asked + i) % row_count;
            queries.insert(queries.end(), rows.begin() + static_cast<std::ptrdiff_t>(row * width),
                           rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
        }
        SearchBatch batch;
        batch.queries = queries;
        batch.count = count;
        batch.k = 10;
        batch.effort = GetParam() == Method::graph ? 200 : 1 << 20;
        batch.dead = dead;
        batch.dead_version = version;
        std::vector<std::vector<RowResult>> results;
        searcher->search(batch, results, pool);
        return results[0];
    }
    // Whether a query equal to the row finds it.
    bool finds(std::size_t row, const Bits& dead, std::uint64_t version, std::size_t count = 1) const
    {
        const std::vector<RowResult> found = ask(row, dead, version, count);
        EXPECT_EQ(found.size(), 10U);
        return !found.empty() && found[0].row == row;
    }
    std::vector<RowResult> continued(std::size_t row, const Bits& dead, std::uint64_t version) const
    {
        SearchBatch batch;
        batch.queries = std::span(rows).subspan(row * width, width);
        batch.count = 1;
        batch.k = 10;
        batch.dead = dead;
        batch.dead_version = version;
        std::vector<RowResult> results;
        searcher->search_exact(batch, -HUGE_VAL, 0, results, pool);
        return results;
    }
    static Bits killing(std::initializer_list<std::size_t> gone)
    {
        Bits bits((row_count + 63) / 64);
        for (const std::size_t row : gone) bits[row / 64] |= std::uint64_t{1} << (row % 64);
        return bits;
    }

    mutable ThreadPool pool{2};
    std::vector<float> rows;
    Index index;
    std::unique_ptr<Searcher> searcher;
};

TEST_P(Tombstones, ChangeFromSearchToSearch)
{
    for (const std::size_t count : {1, 64, 300}) {
        const Bits none;
        EXPECT_TRUE(finds(100, none, 0, count));
        const Bits one = killing({100});
        const std::uint64_t first = new_bitmap_version();
        EXPECT_FALSE(finds(100, one, first, count));
        EXPECT_TRUE(finds(101, one, first, count));
        const Bits two = killing({100, 101, 2999});
        const std::uint64_t second = new_bitmap_version();
        EXPECT_FALSE(finds(100, two, second, count));
        EXPECT_FALSE(finds(101, two, second, count));
        EXPECT_FALSE(finds(2999, two, second, count));
        // An earlier search still has its bitmap.
        EXPECT_TRUE(finds(101, one, first, count));
        EXPECT_FALSE(finds(101, two, second, count));
        EXPECT_TRUE(finds(101, none, 0, count));
    }
}

TEST_P(Tombstones, OfTheSameAddressAreOthersWithAnotherVersion)
{
    Bits bits = killing({100});
    EXPECT_FALSE(finds(100, bits, new_bitmap_version()));
    const Bits others = killing({101});
    std::copy(others.begin(), others.end(), bits.begin());
    const std::uint64_t version = new_bitmap_version();
    EXPECT_TRUE(finds(100, bits, version));
    EXPECT_FALSE(finds(101, bits, version));
    EXPECT_EQ(continued(101, bits, version).size(), 10U);
    EXPECT_NE(continued(101, bits, version)[0].row, 101U);
}

TEST_P(Tombstones, AreNotLookedAtAgainWhileTheirVersionStays)
{
    Bits bits = killing({100});
    const std::uint64_t version = new_bitmap_version();
    EXPECT_FALSE(finds(100, bits, version));
    std::fill(bits.begin(), bits.end(), 0);  // callers must not do this
    EXPECT_FALSE(finds(100, bits, version));
    EXPECT_TRUE(finds(100, bits, new_bitmap_version()));
}

TEST_P(Tombstones, WithoutAVersionAreThoseGiven)
{
    EXPECT_FALSE(finds(100, killing({100}), 0));
    EXPECT_TRUE(finds(100, killing({101}), 0));
    EXPECT_FALSE(finds(101, killing({101}), 0));
}

// Bitmaps that end before the last row: rows beyond their end are alive.
TEST_P(Tombstones, MayBeShorterThanTheIndex)
{
    const Bits bits = {std::uint64_t{1} << 5};
    const std::uint64_t version = new_bitmap_version();
    EXPECT_FALSE(finds(5, bits, version));
    EXPECT_TRUE(finds(2999, bits, version));
    EXPECT_TRUE(finds(70, bits, version, 64));
}

std::string name_of(const testing::TestParamInfo<Method>& info)
{
    return info.param == Method::exact ? "exact" : info.param == Method::ivfadc ? "ivfadc" : "graph";
}
INSTANTIATE_TEST_SUITE_P(Methods, Tombstones, testing::Values(Method::exact, Method::ivfadc, Method::graph), name_of);

}  // namespace
}  // namespace pgwarp::test
