// The workspace that a search of ivfadc plans for is bounded by the room that there is (ivfadc/device_search.h), so
// that no search asks others to leave the device for what it can do without.
#include <gtest/gtest.h>

#include <cstdio>

#include "device/context.h"
#include "ivfadc/device_search.h"
#include "ivfadc/ivfadc.h"
#include "ivfadc/mirror.h"
#include "methods_fixture.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    const char* name;
    std::size_t rows;
    std::size_t dimensions;
    std::int64_t codes;
    std::int64_t refine;
    std::int64_t lists;
    std::size_t count;
    std::size_t probes;
};

class PlannedWorkspace : public testing::TestWithParam<Case>
{
};

TEST_P(PlannedWorkspace, IsWithinTheRoom)
{
    const Case given = GetParam();
    constexpr std::size_t room = std::size_t{96} << 20;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(given.rows, given.dimensions, 9);
    const ParameterList options = make_list({{"codes", given.codes}, {"refine", given.refine}, {"lists", given.lists}});
    const Index index(Method::ivfadc, Metric::l2, given.dimensions, rows, options, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    cuda::ivfadc::Mirror mirror(shared_context(), index.shape, index.builder->effective_options(), arrays);
    index.write_to(mirror);
    mirror.finish_load(pool);
    const auto plan = cuda::ivfadc::plan_search(mirror, given.count, given.probes, 19, 10, true, room);
    std::printf("[ measured ] %s: %u queries, sorted %d, workspace %zu MiB of %zu MiB\n", given.name, plan.count,
                plan.sorted ? 1 : 0, plan.workspace >> 20, room >> 20);
    EXPECT_LE(plan.workspace, room) << given.name;
}

// A search in a context with so much room beside its index: nobody is asked to make room.
TEST_P(PlannedWorkspace, AsksNobodyToLeave)
{
    const Case given = GetParam();
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(given.rows, given.dimensions, 9);
    const ParameterList options = make_list({{"codes", given.codes}, {"refine", given.refine}, {"lists", given.lists}});
    const Index index(Method::ivfadc, Metric::l2, given.dimensions, rows, options, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const auto shape = [&] {
        const auto probe =
            cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(), arrays, shared_context());
        index.write_to(*probe);
        probe->finish_load(pool);
        return probe->residence().device_bytes;
    }();
    cuda::Context context(0, shape + (std::uint64_t{96} << 20));
    const auto searcher = cuda::ivfadc::make_searcher(index.shape, index.builder->effective_options(), arrays, context);
    index.write_to(*searcher);
    searcher->finish_load(pool);
    int asked = 0;
    context.pool().set_relief([&](std::uint64_t) { ++asked; });
    const std::vector<float> queries = random_rows(given.count, given.dimensions, 9);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = given.count;
    batch.k = 10;
    batch.effort = static_cast<std::int64_t>(given.probes);
    std::vector<std::vector<RowResult>> results;
    searcher->search(batch, results, pool);
    for (const auto& one : results) ASSERT_EQ(one.size(), 10U);
    std::printf("[ measured ] %s: relief asked for %d times\n", given.name, asked);
    EXPECT_EQ(asked, 0) << given.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, PlannedWorkspace,
                         testing::Values(Case{"tables of codes", 40000, 128, 0, 0, 2000, 6000, 2},
                                         Case{"long queries", 4000, 2048, 1, 1, 40, 12000, 8}),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace pgwarp::test
