// Methods that index sparse vectors, as the engine loads and searches them.
#include <gtest/gtest.h>

#include <limits>

#include "list_fixture.h"
#include "methods/arrays.h"
#include "methods_fixture.h"
#include "protocol/search_bound.h"
#include "sparse_fixture.h"

namespace pgwarp::test
{
namespace
{

struct MethodAndMetric {
    Method method;
    Metric metric;
};

std::vector<MethodAndMetric> sparse_methods()
{
    std::vector<MethodAndMetric> all;
    for (const MethodDescription* method : method_descriptions())
        for (const Comparison& comparison : method->comparisons)
            if (comparison.element == ElementType::sparse) all.push_back({method->method, comparison.metric});
    return all;
}

std::string name_of(const testing::TestParamInfo<MethodAndMetric>& info)
{
    return find_description(info.param.method)->name + ("_" + name_of_metric(info.param.metric));
}

class SparseIndexes : public testing::TestWithParam<MethodAndMetric>
{
protected:
    static constexpr std::size_t row_count = 500;

    SparseIndexes()
        : rows(random_lists(row_count, 12, 60, true, 8)),
          queries(random_lists(25, 12, 60, true, 9)),
          index(Index::shape_of(GetParam().method, GetParam().metric, 60, ElementType::sparse), rows.view(), {}, pool)
    {
        batch.lists = queries.view();
        batch.count = queries.count();
        batch.k = 20;
    }
    std::vector<RowResult> in_order(std::size_t query, std::size_t most = row_count, RowBitmap dead = {}) const
    {
        std::vector<double> distances(row_count);
        index.searcher->compare_rows(queries.view().row(query), rows.view(), distances);
        std::vector<RowResult> all;
        for (std::uint32_t i = 0; i < row_count; ++i)
            if (!bit_is_set(dead, i) && !std::isnan(distances[i])) all.push_back({distances[i], i});
        std::sort(all.begin(), all.end(), comes_before);
        all.resize(std::min(all.size(), most));
        return all;
    }
    std::vector<std::vector<RowResult>> search()
    {
        std::vector<std::vector<RowResult>> results;
        index.searcher->search(batch, results, pool);
        return results;
    }

    ThreadPool pool{2};
    OwnedRows rows;
    OwnedRows queries;
    Index index;
    SearchBatch batch;
};

TEST_P(SparseIndexes, SearchInBatches)
{
    std::vector<std::uint64_t> dead((row_count + 63) / 64, 0x8000000000010101U);
    batch.dead = dead;
    const auto results = search();
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, dead)));
    batch.lists = queries.view().row(3);
    batch.count = 1;
    EXPECT_NO_FATAL_FAILURE(expect_equal(search()[0], in_order(3, batch.k, dead)));
    batch.k = 0;
    EXPECT_TRUE(search()[0].empty());
}

// Of searchers that take filters, each query has its own.
TEST_P(SparseIndexes, LeaveOutTheRowsThatFail)
{
    if (!index.searcher->takes_filters()) GTEST_SKIP() << "takes no filters";
    std::vector<std::vector<std::uint64_t>> failing(batch.count);
    std::vector<RowFilter> filters(batch.count);
    for (std::size_t q = 0; q < batch.count; ++q) {
        failing[q].assign((row_count + 63) / 64, 0x9249249249249249U << q % 3 | q);
        filters[q].fails = failing[q];
    }
    batch.filters = filters;
    const auto results = search();
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, failing[q])));
}

TEST_P(SparseIndexes, FindTheNearestOfCertainRows)
{
    std::vector<std::uint64_t> others((row_count + 63) / 64, ~std::uint64_t{0});
    std::vector<std::uint32_t> certain;
    for (std::uint32_t row = row_count - 1; row < row_count; row -= 7) {
        certain.push_back(row);
        others[row / 64] &= ~(std::uint64_t{1} << row % 64);
    }
    const std::vector<RowList> lists(batch.count, RowList(certain));
    std::vector<std::vector<RowResult>> results;
    index.searcher->search_among(batch, lists, before_all, results, pool);
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, others)));
}

TEST_P(SparseIndexes, FindTheRowsWithinABound)
{
    if (!find_description(GetParam().method)->takes_bound.has(ElementType::sparse)) GTEST_SKIP() << "takes no bound";
    for (const double within : {-3.0, 0.0, 0.5, 1.0, 4.0, 12.0}) {
        set_within(&batch.settings, within);
        batch.k = row_count;
        const auto results = search();
        for (std::size_t q = 0; q < batch.count; ++q) {
            std::vector<RowResult> wanted = in_order(q);
            std::erase_if(wanted, [within](const RowResult& row) { return row.distance > within; });
            ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], wanted)) << within;
        }
    }
}

TEST_P(SparseIndexes, ContinueUntilAllRowsWereOffered)
{
    for (const std::uint32_t k : {1U, 7U, 64U}) {
        SearchBatch one = batch;
        one.lists = queries.view().row(k % 25);
        one.count = 1;
        one.k = k;
        std::vector<RowResult> all;
        RowResult last = before_all;
        while (true) {
            std::vector<RowResult> page;
            index.searcher->search_exact(one, last.distance, last.row, page, pool);
            if (page.empty()) break;
            all.insert(all.end(), page.begin(), page.end());
            last = page.back();
        }
        ASSERT_NO_FATAL_FAILURE(expect_equal(all, in_order(k % 25)));
    }
}

TEST_P(SparseIndexes, EndWhenCancelled)
{
    CancelToken cancel;
    cancel.cancel();
    batch.cancel = &cancel;
    EXPECT_THROW(search(), Cancelled);
}

TEST_P(SparseIndexes, RefuseMalformedArrays)
{
    const std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, 2, 1),
                                            make_array_shape(array_list_words, ArrayType::u32, 2, 1),
                                            make_array_shape(array_list_weights, ArrayType::f32, 2, 1)};
    const auto load = [&](const std::vector<std::uint32_t>& words, const std::vector<float>& weights) {
        const auto searcher = find_method(GetParam().method)->make_searcher(index.shape, {}, arrays);
        const std::uint64_t offsets[2] = {0, 2};
        searcher->write(array_list_offsets, 0, std::as_bytes(std::span(offsets)));
        searcher->write(array_list_words, 0, std::as_bytes(std::span(words)));
        searcher->write(array_list_weights, 0, std::as_bytes(std::span(weights)));
        searcher->finish_load(pool);
    };
    EXPECT_NO_THROW(load({3, 59}, {1, 2}));
    EXPECT_THROW(load({3, 60}, {1, 2}), BadRequest);
    EXPECT_THROW(load({3, 3}, {1, 2}), BadRequest);
    EXPECT_THROW(load({3, 59}, {1, std::numeric_limits<float>::infinity()}), BadRequest);
    EXPECT_THROW(load({3, 59}, {std::numeric_limits<float>::quiet_NaN(), 2}), BadRequest);
}

INSTANTIATE_TEST_SUITE_P(Methods, SparseIndexes, testing::ValuesIn(sparse_methods()), name_of);

TEST(SparseIndexesOf, AtLeastTwoMethods)
{
    EXPECT_GE(sparse_methods().size(), 8U);
}

}  // namespace
}  // namespace pgwarp::test
