// Clients that go away, batches, and draining.
#include <gtest/gtest.h>

#include <thread>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

class EngineCancel : public testing::Test
{
protected:
    void SetUp() override { test_method_state().reset(); }
    void TearDown() override { test_method_state().reset(); }
    // Waits until the engine has `count` requests in flight, and then for a moment in which it queues them.
    static void await_requests(TestServer& server, std::uint32_t count)
    {
        ASSERT_TRUE(eventually([&] { return server.engine().in_flight == count; }));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
};

TEST_F(EngineCancel, ADisconnectEndsASearchAndOthersAreServed)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    TestIndex second = index;
    second.key.relation = 8;
    load(client, second, build(client, second));
    const std::vector<float> query(4);
    test_method_state().cost = 1e9;
    test_method_state().slow_ms = 20000;
    {
        EngineClient leaving(server.path());
        leaving.send(MessageType::search, EngineClient::bytes_of(search_request(index, 3)),
                     EngineClient::bytes_of_all(query));
        ASSERT_TRUE(eventually([] { return test_method_state().searches == 1; }));
        test_method_state().slow_ms = 0;
        // Another index is served during that search.
        EXPECT_EQ(search(client, search_request(second, 3), query).results.size(), 3U);
    }
    EXPECT_TRUE(eventually([] { return test_method_state().cancelled == 1; }));
    EXPECT_EQ(search(client, search_request(index, 3), query).results.size(), 3U);
}

TEST_F(EngineCancel, WhatArrivesWhileTheDeviceWorksIsOneBatch)
{
    TestServer server;
    EngineClient first(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(first, index, build(first, index));
    test_method_state().cost = 1e9;
    test_method_state().held = true;
    const std::vector<float> zero(4);
    const std::uint64_t id = first.send(MessageType::search, EngineClient::bytes_of(search_request(index, 3)),
                                        EngineClient::bytes_of_all(zero));
    ASSERT_TRUE(eventually([] { return test_method_state().searches == 1; }));
    std::vector<std::thread> sessions;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i) {
        sessions.emplace_back([&, i] {
            EngineClient client(server.path());
            const auto query = index.random_rows(1, static_cast<std::uint32_t>(i));
            const SearchOutcome outcome = search(client, search_request(index, 3), query);
            const auto truth = brute_force(index, query.data(), 3);
            bool same =
                outcome.results.size() == 3 && outcome.reply.batch_width == 8 && outcome.reply.queue_ns > 1000000;
            // A continuation goes on behind the query's own results, not behind another's.
            same = same && outcome.reply.last.distance == outcome.results.back().distance;
            for (std::size_t j = 0; same && j < 3; ++j) same = outcome.results[j].tid == index.tids[truth[j].second];
            // A continuation goes on behind the query's own last result.
            same = same && outcome.reply.last.distance == outcome.results[2].distance &&
                   outcome.reply.last.ordinal == truth[2].second;
            if (same) ++right;
        });
    }
    await_requests(server, 9);
    test_method_state().held = false;
    EXPECT_EQ(decode_outcome(first.wait(id)).reply.batch_width, 1U);
    for (auto& session : sessions) session.join();
    EXPECT_EQ(test_method_state().widest, 8U);
    EXPECT_EQ(right, 8);
}

TEST_F(EngineCancel, OneMemberLeavingDoesNotCancelItsBatch)
{
    TestServer server;
    EngineClient first(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(first, index, build(first, index));
    test_method_state().cost = 1e9;
    test_method_state().held = true;
    const std::vector<float> query(4);
    const auto request = search_request(index, 3);
    const std::uint64_t id =
        first.send(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(query));
    ASSERT_TRUE(eventually([] { return test_method_state().searches == 1; }));
    EngineClient staying(server.path());
    auto leaving = std::make_unique<EngineClient>(server.path());
    leaving->send(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(query));
    const std::uint64_t stays =
        staying.send(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(query));
    await_requests(server, 3);
    test_method_state().slow_ms = 300;
    test_method_state().held = false;
    ASSERT_TRUE(eventually([] { return test_method_state().searches == 2; }));
    leaving.reset();
    EXPECT_EQ(decode_outcome(first.wait(id)).results.size(), 3U);
    EXPECT_EQ(decode_outcome(staying.wait(stays)).results.size(), 3U);
    EXPECT_EQ(test_method_state().cancelled, 0);
}

TEST_F(EngineCancel, ADisconnectEndsABuild)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    test_method_state().build_ms = 20000;
    {
        EngineClient leaving(server.path());
        const BuildRequest token{begin_build(leaving, index)};
        send_rows(leaving, index, token.token);
        leaving.send(MessageType::build_run, EngineClient::bytes_of(token));
        // Waits until the builder has begun.
        while (std::string(leaving.receive().as<ProgressReply>().phase) != "testing") {
        }
        EXPECT_EQ(server.engine().builds.count(), 1U);
        EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).results.size(), 3U);
    }
    EXPECT_TRUE(eventually([] { return test_method_state().cancelled == 1; }));
    EXPECT_TRUE(eventually([&] { return server.engine().builds.count() == 0; }));
}

TEST_F(EngineCancel, ProgressIsPaced)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    test_method_state().build_ms = 350;
    const BuildRequest token{begin_build(client, index)};
    send_rows(client, index, token.token);
    int reports = 0;
    const auto begun = Clock::now();
    client.wait(client.send(MessageType::build_run, EngineClient::bytes_of(token)),
                [&](const ProgressReply& progress) { reports += std::string(progress.phase) == "testing" ? 1 : 0; });
    EXPECT_GE(reports, 2);
    // One at the beginning, one each tenth of a second, and some slack.
    EXPECT_LE(reports, 4 + (Clock::now() - begun) / std::chrono::milliseconds(100));
}

TEST_F(EngineCancel, DrainingAnswersWhatWasAsked)
{
    TestServer server;
    EngineClient client(server.path());
    EngineClient other(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    test_method_state().cost = 1e9;
    test_method_state().held = true;
    const std::vector<float> query(4);
    const std::uint64_t id = client.send(MessageType::search, EngineClient::bytes_of(search_request(index, 3)),
                                         EngineClient::bytes_of_all(query));
    ASSERT_TRUE(eventually([] { return test_method_state().searches == 1; }));
    server.server().stop("test");
    try {
        search(other, search_request(index, 3), query);
        FAIL() << "a new request was taken";
    } catch (const EngineError& error) {
        EXPECT_EQ(error.code, ErrorCode::shutting_down);
    }
    test_method_state().held = false;
    EXPECT_EQ(decode_outcome(client.wait(id)).results.size(), 3U);
    server.join();
}

#ifdef PGWARP_FAULTS
TEST_F(EngineCancel, Faults)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    SearchRequest request = search_request(index, 3);
    request.fault = static_cast<std::uint16_t>(Fault::out_of_memory);
    try {
        search(client, request, std::vector<float>(4));
        FAIL();
    } catch (const EngineError& error) {
        EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    }
    request.fault = static_cast<std::uint16_t>(Fault::sleep);
    const std::vector<float> query(4);
    EngineClient sleeper(server.path());
    const std::uint64_t id =
        sleeper.send(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(query));
    ASSERT_TRUE(eventually([&] { return server.engine().in_flight == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(server.engine().in_flight, 1U);
    sleeper.close();
    EXPECT_TRUE(eventually([&] { return server.engine().in_flight == 0; })) << id;
}
#endif

TEST_F(EngineCancel, AReaderThatStopsReadingCostsOnlyItself)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(20000, 4, Metric::l2);
    load(client, index, build(client, index));
    // The engine reads no more of a connection with 64 requests under way, and then sending may block.
    constexpr int most_under_way = 60;
    EngineClient lazy(server.path());
    const std::vector<float> query(4);
    const auto request = search_request(index, 20000);  // 320 kB each
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < most_under_way; ++i) {
        ids.push_back(
            lazy.send(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(query)));
    }
    EXPECT_EQ(search(client, search_request(index, 3), query).results.size(), 3U);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        std::uint64_t got = 0;
        EXPECT_EQ(decode_outcome(lazy.receive(&got)).results.size(), 20000U);
    }
}

TEST_F(EngineCancel, ManyIdleConnections)
{
    TestServer server;
    std::vector<std::unique_ptr<EngineClient>> idle;
    for (int i = 0; i < 1000; ++i) idle.push_back(std::make_unique<EngineClient>(server.path()));
    EXPECT_EQ(idle.back()->call(MessageType::status).as<StatusReply>().connections, 1000U);
    idle.clear();
    EXPECT_TRUE(eventually([&] { return server.engine().connections == 0; }));
}

}  // namespace
}  // namespace pgwarp
