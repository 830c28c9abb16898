// Memory of the searches of a batch: memory bounds the number of searches in a batch, and is given back.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <list>
#include <thread>

#include "delta_fixture.h"
#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

std::uint64_t memory_in_use()
{
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

TEST(SearchMemory, AsManyQueriesAsTheirResultsAllow)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    SearchSettings settings;
    settings.mirror = fresh.mirror;
    settings.k = 10;
    constexpr std::uint64_t bytes = 1 << 20;
    EXPECT_GT(queries_within(settings, bytes), 1000U);
    settings.k = 300;
    const std::size_t few = queries_within(settings, bytes);
    EXPECT_LT(few, 200U);
    settings.earlier_count = 2;
    settings.earlier[0] = {0, 100, 0};
    settings.earlier[1] = {0, 200, 0};
    EXPECT_LT(queries_within(settings, bytes), few) << "each rung has results of its own";
    settings.earlier_count = 0;
    settings.k = max_k;
    EXPECT_GT(queries_within(settings, bytes), 20U) << "there are no more rows than these";
    EXPECT_EQ(queries_within(settings, 10), 1U);
}

TEST(SearchMemory, SearchesForManyResultsGoInSeveralBatches)
{
    TestServer server;
    EngineClient client(server.path());
    constexpr std::uint32_t rows = 50000;
    constexpr int searches = 60;
    constexpr int most_under_way = 30;  // of a session
    const TestIndex index = TestIndex::random(rows, 4, Metric::l2);
    load(client, index, build(client, index));
    TestMethodState& state = test_method_state();
    state.cost = 1e9;
    state.widest = 0;
    state.held = true;
    const std::vector<float> query = index.random_rows(1, 7);
    const auto send = [&](EngineClient& session) {
        session.send(MessageType::search, EngineClient::bytes_of(search_request(index, rows)),
                     EngineClient::bytes_of_all(query));
    };
    const auto wait_for = [end = Clock::now() + std::chrono::seconds(20)](const auto& what) {
        while (!what() && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    // The others come during the first search.
    state.searches = 0;
    send(client);
    wait_for([&] { return state.searches == 1; });
    std::list<EngineClient> sessions;
    for (int i = 0; i < searches; ++i) {
        if (i % most_under_way == 0) sessions.emplace_back(server.path());
        send(sessions.back());
    }
    wait_for([&] { return server.engine().in_flight == searches + 1; });
    state.held = false;
    EXPECT_EQ(decode_outcome(client.receive()).results.size(), rows);
    for (EngineClient& session : sessions) {
        for (int i = 0; i < most_under_way; ++i) EXPECT_EQ(decode_outcome(session.receive()).results.size(), rows);
    }
    state.cost = 1.0;
    EXPECT_GT(state.widest, 10U);
    EXPECT_LT(state.widest, 40U);
}

TEST(SearchMemory, ALargeBatchLeavesNothingBehind)
{
    Fresh fresh(Method::exact, Metric::l2, 3000, 1000);
    fresh.append(*fresh.mirror, 3000, 4000);
    SearchSettings settings;
    settings.mirror = fresh.mirror;
    settings.k = 4000;
    const std::vector<float> queries = fresh.queries(400);
    const std::uint64_t before = memory_in_use();
    {
        SearchAnswer answer;
        run_search(settings, dense_rows(queries.data(), 400, dimensions), nullptr, fresh.pool, answer);
        ASSERT_EQ(answer.results.size(), 400U * 4000U);
    }
    EXPECT_LT(memory_in_use(), before + (std::uint64_t{8} << 20));
}

}  // namespace
}  // namespace pgwarp
