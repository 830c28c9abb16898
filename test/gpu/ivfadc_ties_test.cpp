// Searches of ivfadc among more equal rows than are kept give the same rows each time.
#include <gtest/gtest.h>

#include <cstdio>

#include "device/context.h"
#include "ivfadc/ivfadc.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    const char* name;
    std::size_t batch;
    std::uint32_t k;
    std::int64_t probes;
};

class EqualRows : public testing::TestWithParam<Case>
{
};

TEST_P(EqualRows, AreChosenTheSameWay)
{
    const Case given = GetParam();
    constexpr std::size_t dimensions = 8;
    constexpr std::size_t count = 9000;
    ThreadPool pool(0);
    std::vector<float> rows = random_rows(count, dimensions, 3);
    for (std::size_t i = 0; i < 8000 * dimensions; ++i) rows[i] = rows[i % dimensions];
    const Index index(Method::ivfadc, Metric::l2, dimensions, rows, make_list({{"codes", 1}, {"lists", 8}}), pool);
    const auto searcher = cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(),
                                                      index.builder->arrays(), shared_context());
    for (const ArrayShape& array : index.builder->arrays()) searcher->write(array.name, 0, index.contents(array));
    searcher->finish_load(pool);
    std::vector<float> queries;
    for (std::size_t i = 0; i < given.batch; ++i) {
        queries.insert(queries.end(), rows.begin(), rows.begin() + dimensions);
    }
    SearchBatch batch;
    batch.queries = queries;
    batch.count = given.batch;
    batch.k = given.k;
    batch.effort = given.probes;
    std::vector<std::vector<RowResult>> first;
    std::vector<std::vector<RowResult>> cpu;
    searcher->search(batch, first, pool);
    index.searcher->search(batch, cpu, pool);
    std::size_t other = 0;
    for (int turn = 0; turn < 8; ++turn) {
        std::vector<std::vector<RowResult>> again;
        searcher->search(batch, again, pool);
        for (std::size_t q = 0; q < given.batch; ++q) other += ids(again[q]) != ids(first[q]) ? 1 : 0;
    }
    std::size_t unlike = 0;
    for (std::size_t q = 0; q < given.batch; ++q) unlike += ids(first[q]) != ids(cpu[q]) ? 1 : 0;
    std::printf("[ measured ] %s: %zu of %zu answers differ from run to run, %zu of %zu from the CPU's\n", given.name,
                other, 8 * given.batch, unlike, given.batch);
    EXPECT_EQ(other, 0U) << given.name;
}

INSTANTIATE_TEST_SUITE_P(Ways, EqualRows,
                         testing::Values(Case{"one", 1, 10, 8}, Case{"some", 40, 10, 8}, Case{"many", 400, 10, 8},
                                         Case{"wide", 1, 1500, 8}, Case{"many, wide", 40, 1500, 8}),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace pgwarp::test
