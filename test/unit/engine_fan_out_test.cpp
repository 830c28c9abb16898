// One query's delta rows are compared on several threads: the answer is that of one thread.
#include <gtest/gtest.h>

#include "delta_fixture.h"
#include "engine/search/delta_search.h"

namespace pgwarp
{
namespace
{

using namespace test;

constexpr std::size_t indexed = 200;
constexpr std::size_t many = 24000;  // delta rows: enough for several threads

class FreshOnThreads : public testing::TestWithParam<Metric>
{
protected:
    std::vector<Found> nearest(std::size_t k, ThreadPool& pool, const CancelToken* cancel = nullptr) const
    {
        std::vector<Found> found;
        const std::vector<float> query = fresh.queries(1);
        search_delta(*fresh.mirror, *fresh.mirror->snapshot(), DeltaRows::all,
                     dense_rows(query.data(), 1, query.size()), k, cancel, pool, found);
        return found;
    }
    void expect_same_on_threads(std::size_t k)
    {
        const std::vector<Found> alone = nearest(k, one);
        const std::vector<Found> together = nearest(k, four);
        ASSERT_EQ(alone.size(), together.size());
        for (std::size_t i = 0; i < alone.size(); ++i) {
            EXPECT_EQ(alone[i].distance, together[i].distance);
            EXPECT_EQ(alone[i].ordinal, together[i].ordinal);
            EXPECT_EQ(alone[i].tid, together[i].tid);
        }
    }

    Fresh fresh{Method::exact, GetParam(), indexed, many};
    ThreadPool one{1};
    ThreadPool four{4};
};

TEST_P(FreshOnThreads, AreThoseOfOneThread)
{
    fresh.append(*fresh.mirror, indexed, indexed + many);
    for (const std::size_t k : {1, 10, 3000, 30000}) expect_same_on_threads(k);
    fresh.kill(*fresh.mirror, every(3, indexed + many), 1);
    for (const std::size_t k : {1, 10, 3000, 30000}) expect_same_on_threads(k);
    const std::vector<float> query = fresh.queries(1);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, query, 10), query, 10, every(3, indexed + many)), 1);
}

TEST_P(FreshOnThreads, StopWhenCancelled)
{
    fresh.append(*fresh.mirror, indexed, indexed + many);
    CancelToken cancel;
    EXPECT_EQ(nearest(10, four, &cancel).size(), 10U);
    cancel.cancel();
    EXPECT_THROW(nearest(10, one, &cancel), Cancelled);
    EXPECT_THROW(nearest(10, four, &cancel), Cancelled);
}

INSTANTIATE_TEST_SUITE_P(Metrics, FreshOnThreads, testing::Values(Metric::l2, Metric::cosine, Metric::l1));

}  // namespace
}  // namespace pgwarp
