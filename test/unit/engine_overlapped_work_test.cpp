// Delta rows are compared while a device works: the answers are those of comparing them afterwards.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "delta_fixture.h"
#include "forwarding_searcher.h"

namespace pgwarp
{
namespace
{

using namespace test;

std::chrono::milliseconds device_time{0};  // of a search

// A searcher of the CPU that runs the given work while it waits, as a device's searcher does.
class WaitingSearcher : public ForwardingSearcher
{
public:
    using ForwardingSearcher::ForwardingSearcher;
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override
    {
        if (batch.overlapped_work != nullptr) batch.overlapped_work->run();
        std::this_thread::sleep_for(device_time);
        SearchBatch own = batch;
        own.probed = nullptr;
        ForwardingSearcher::search(own, results, pool);
        // A second run, as in searchers that search again with other settings.
        if (batch.overlapped_work != nullptr) batch.overlapped_work->run();
    }
};

template <Method method>
std::unique_ptr<Searcher> make_waiting(const IndexShape& shape, const ParameterList& options,
                                       std::span<const ArrayShape> arrays)
{
    return std::make_unique<WaitingSearcher>(find_method(method)->make_searcher(shape, options, arrays));
}

template <Method method>
MethodFactory waiting()
{
    MethodFactory factory = *find_method(method);
    factory.make_searcher = &make_waiting<method>;
    return factory;
}

TEST(OverlappedWork, RunsOnce)
{
    int runs = 0;
    OverlappedWork overlapped_work([&] { ++runs; });
    EXPECT_FALSE(overlapped_work.begun());
    overlapped_work.run();
    overlapped_work.run();
    EXPECT_TRUE(overlapped_work.begun());
    EXPECT_EQ(runs, 1);
}

TEST(OverlappedWork, ExactAnswersAreTheSame)
{
    const MethodFactory device = waiting<Method::exact>();
    for (const std::size_t plain : {0, 1, 16}) {
        Fresh fresh(Method::exact, Metric::l2, 1500, 1300, {}, &device);
        Fresh cpu(Method::exact, Metric::l2, 1500, 1300);
        fresh.append_in_parts(*fresh.mirror, 16, plain);
        cpu.append(*cpu.mirror, cpu.indexed(), cpu.rows());
        const std::set<std::size_t> dead = every(3, fresh.rows());
        const std::vector<float> queries = fresh.queries(20);
        for (const bool dying : {false, true}) {
            if (dying) {
                fresh.kill(*fresh.mirror, dead, 1);
                cpu.kill(*cpu.mirror, dead, 1);
            }
            for (const std::uint32_t k : {1U, 10U, 2000U}) {
                expect_same(fresh.search(fresh.mirror, queries, k), cpu.search(cpu.mirror, queries, k));
            }
        }
    }
}

TEST(OverlappedWork, IvfadcFindsAsMuch)
{
    const MethodFactory device = waiting<Method::ivfadc>();
    const ParameterList options = make_list({{"lists", 48}});
    Fresh fresh(Method::ivfadc, Metric::l2, 4000, 3000, options, &device);
    Fresh cpu(Method::ivfadc, Metric::l2, 4000, 3000, options);
    fresh.append_in_parts(*fresh.mirror, 16, 1);
    cpu.append_in_parts(*cpu.mirror, 16, 1);
    const std::vector<float> queries = fresh.queries(100);
    EXPECT_NEAR(fresh.recall(fresh.search(fresh.mirror, queries, 10, 6), queries, 10),
                cpu.recall(cpu.search(cpu.mirror, queries, 10, 6), queries, 10), 0.005);
    // All rows, from few lists.
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 3000, 1);
    for (const std::uint32_t count : answer.counts) EXPECT_EQ(count, 3000U);
}

TEST(OverlappedWork, ACancelledSearchEnds)
{
    const MethodFactory device = waiting<Method::exact>();
    Fresh fresh(Method::exact, Metric::l2, 500, 400, {}, &device);
    fresh.append(*fresh.mirror, 500, 900);
    SearchSettings settings;
    settings.mirror = fresh.mirror;
    settings.k = 10;
    CancelToken cancel;
    cancel.cancel();
    SearchAnswer answer;
    const std::vector<float> queries = fresh.queries(3);
    EXPECT_THROW(run_search(settings, dense_rows(queries.data(), 3, dimensions), &cancel, fresh.pool, answer),
                 Cancelled);
}

TEST(OverlappedWork, CostsWhatADispatchTakesLongerThanWithFewRows)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    const auto count = [&](std::size_t queries, std::uint64_t all, std::uint64_t parts, std::uint64_t plain) {
        for (int i = 0; i < 10000; ++i) fresh.mirror->count_overlapped_delta({queries, all, parts, plain});
    };
    fresh.mirror->count_with_few(1, 40000);
    count(1, 40000, 10000, 10000);
    EXPECT_EQ(fresh.mirror->delta_cost(), 0);
    EXPECT_FALSE(fresh.mirror->wants_part());
    // The time of a wider batch is not known yet.
    count(8, 40000, 20000, 0);
    EXPECT_GT(fresh.mirror->delta_cost(), 0.5);
    count(1, 40000, 10000, 10000);
    EXPECT_LT(fresh.mirror->delta_cost(), 0.01);
    // The device worked for the index and the parts until the end.
    count(1, 55000, 30000, 15000);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.375, 0.01) << "15 of 40 us";
}

TEST(OverlappedWork, RungsSayNothingOfSearches)
{
    const MethodFactory device = waiting<Method::exact>();
    Fresh fresh(Method::exact, Metric::l2, 100, 400, {}, &device);
    fresh.append(*fresh.mirror, 100, 500);
    const std::vector<float> queries = fresh.queries(20);
    SearchSettings settings;
    settings.mirror = fresh.mirror;
    settings.k = 10;
    SearchAnswer answer;
    device_time = std::chrono::milliseconds(20);
    fresh.mirror->count_with_few(20, 20000000);
    settings.earlier_count = 2;
    settings.earlier[0] = {0, 2, 0};
    settings.earlier[1] = {0, 5, 0};
    for (int i = 0; i < 20; ++i)
        run_search(settings, dense_rows(queries.data(), 20, dimensions), nullptr, fresh.pool, answer);
    device_time = {};
    // A search that takes 12 ms longer than one with few delta rows.
    for (int i = 0; i < 1000; ++i) fresh.mirror->count_overlapped_delta({20, 32000000, 12000000, 0});
    EXPECT_GT(fresh.mirror->delta_cost(), 0.1);
}

TEST(OverlappedWork, WhatHeldADispatchUpCountsForLittle)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    fresh.mirror->count_with_few(1, 40000);
    for (int i = 0; i < 3; ++i) fresh.mirror->count_with_few(1, 80000000);
    for (int i = 0; i < 10000; ++i) fresh.mirror->count_overlapped_delta({1, 60000, 20000, 0});
    EXPECT_GT(fresh.mirror->delta_cost(), 0.2);
    // After enough such searches the new time of a slower device is accepted.
    for (int i = 0; i < 200; ++i) fresh.mirror->count_with_few(1, 60000);
    for (int i = 0; i < 10000; ++i) fresh.mirror->count_overlapped_delta({1, 60000, 20000, 0});
    EXPECT_LT(fresh.mirror->delta_cost(), 0.02);
}

TEST(OverlappedWork, WhatADeviceHidesIsToStayHidden)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    fresh.mirror->count_with_few(1, 40000);
    for (int i = 0; i < 1000; ++i) fresh.mirror->count_overlapped_delta({1, 40000, 0, 9000});
    EXPECT_FALSE(fresh.mirror->wants_part());
    for (int i = 0; i < 1000; ++i) fresh.mirror->count_overlapped_delta({1, 40000, 0, 12000});
    EXPECT_TRUE(fresh.mirror->wants_part());
    EXPECT_EQ(fresh.mirror->delta_cost(), 0);
}

}  // namespace
}  // namespace pgwarp
