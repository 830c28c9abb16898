// Answers of batches on their way to sessions: sessions that leave, engines that end, replies that find no memory.
#include "engine/search/finished_batch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <new>
#include <random>
#include <thread>
#include <type_traits>

#include "address_space_limit.h"
#include "engine/server/connection.h"
#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

// Members move when their vector grows; spans of a copied one would lie in freed memory.
static_assert(std::is_nothrow_move_constructible_v<WaitingSearch>);

class EngineFinishedBatch : public testing::Test
{
protected:
    void SetUp() override { test_method_state().reset(); }
    void TearDown() override { test_method_state().reset(); }
};

// A snapshot holds parts of the delta, which may lie on a device.
TEST_F(EngineFinishedBatch, ASearchThatFailsLeavesNoSnapshot)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    const auto mirror = server.engine().residency.find_resident(index.key);
    const auto users = mirror->snapshot().use_count();
    test_method_state().cost = 1e9;
    test_method_state().held = true;
    {
        EngineClient leaving(server.path());
        const std::vector<float> query(4);
        leaving.send(MessageType::search, EngineClient::bytes_of(search_request(index, 3)),
                     EngineClient::bytes_of_all(query));
        ASSERT_TRUE(eventually([] { return test_method_state().searches == 1; }));
    }
    ASSERT_TRUE(eventually([] { return test_method_state().cancelled == 1; }));
    EXPECT_TRUE(eventually([&] { return mirror->snapshot().use_count() == users; }));
}

#ifdef PGWARP_LIMITS_ADDRESS_SPACE
// The rest of a reply does not fit in memory after the socket took its first bytes: another frame must not follow.
TEST_F(EngineFinishedBatch, AReplyThatCannotBeKeptEndsItsConnection)
{
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    Connection connection(FileDescriptor(ends[0]), 1);
    const FileDescriptor peer(ends[1]);
    const std::vector<std::byte> large(std::size_t{256} << 20);
    const AddressSpaceLimit limit(std::uint64_t{16} << 20);
    EXPECT_FALSE(connection.send(MessageType::reply, 1, 0, {}, large));
    EXPECT_EQ(connection.unsent(), 0U);
    // Nothing of this frame has gone: the caller may send another one.
    EXPECT_THROW(connection.send(MessageType::reply, 2, 0, {}, large), std::bad_alloc);
}
#endif

struct Asked {
    std::uint64_t id;
    const TestIndex* index;
    SearchRequest request;
    std::vector<float> queries;
};

// Compares the answers of some of its queries with brute force.
bool is_right(const Asked& asked, const SearchOutcome& outcome)
{
    const std::size_t k = asked.request.k;
    const std::size_t count = asked.queries.size() / 4;
    const bool places = asked.request.want_places != 0;
    if (outcome.results.size() != count * k || outcome.places.size() != (places ? count * k : 0)) return false;
    for (std::size_t q = 0; q < count; q += 1 + count / 20) {
        const auto truth = brute_force(*asked.index, asked.queries.data() + 4 * q, k);
        for (std::size_t j = 0; j < k; ++j) {
            if (outcome.results[q * k + j].tid != asked.index->tids[truth[j].second]) return false;
            if (places && outcome.places[q * k + j] != truth[j].second) return false;
        }
    }
    return true;
}

// Sessions ask narrow and wide searches of several settings, and half of them leave in the middle.
TEST_F(EngineFinishedBatch, SessionsLeaveAndOthersGetTheirOwnAnswers)
{
    constexpr int sessions = 6;
    constexpr int rounds = 150;
    EngineOptions options;
    options.io_threads = 3;
    TestServer server(options);
    EngineClient client(server.path());
    std::vector<TestIndex> indexes;
    for (std::uint32_t i = 0; i < 2; ++i) {
        indexes.push_back(TestIndex::random(40, 4, Metric::l2));
        indexes.back().key.relation = 20 + i;
        load(client, indexes.back(), build(client, indexes.back()));
    }
    test_method_state().cost = 1e9;
    test_method_state().query_us = 2;
    std::atomic<int> wrong{0};
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int session = 0; session < sessions; ++session) {
        threads.emplace_back([&, session] {
            std::mt19937 random(static_cast<unsigned>(session));
            for (int round = 0; round < rounds; ++round) {
                EngineClient own(server.path());
                std::vector<Asked> asked;
                for (std::size_t i = 0; i < 1 + random() % 5; ++i) {
                    const TestIndex& index = indexes[random() % 2];
                    const std::uint32_t count = random() % 3 == 0 ? 200 + random() % 800 : 1 + random() % 3;
                    SearchRequest request = search_request(index, 1 + random() % 3, count);
                    request.want_places = random() % 2;
                    std::vector<float> queries = index.random_rows(count, static_cast<std::uint32_t>(random()));
                    const std::uint64_t id = own.send(MessageType::search, EngineClient::bytes_of(request),
                                                      EngineClient::bytes_of_all(queries));
                    asked.push_back({id, &index, request, std::move(queries)});
                }
                if (random() % 2 == 0) {
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
                    continue;
                }
                std::vector<bool> seen(asked.size());
                for (std::size_t i = 0; i < asked.size(); ++i) {
                    std::uint64_t id = 0;
                    const SearchOutcome outcome = decode_outcome(own.receive(&id));
                    std::size_t which = 0;
                    while (which < asked.size() && asked[which].id != id) ++which;
                    if (which == asked.size() || seen[which]) {
                        ++wrong;
                        continue;
                    }
                    seen[which] = true;
                    ++(is_right(asked[which], outcome) ? right : wrong);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(right, 100);
    EXPECT_TRUE(eventually([&] { return server.engine().in_flight == 0; }));
    for (const TestIndex& index : indexes) {
        EXPECT_TRUE(eventually([&] { return server.engine().residency.find_resident(index.key).use_count() <= 2; }));
    }
}

// Engines that end while searches are under way, before and after the answers.
TEST_F(EngineFinishedBatch, AnEngineEndsWithAnswersOnTheirWay)
{
    constexpr int rounds = 12;
    std::mt19937 random(7);
    for (int round = 0; round < rounds; ++round) {
        EngineOptions options;
        options.io_threads = 2;
        auto server = std::make_unique<TestServer>(options);
        EngineClient client(server->path());
        const TestIndex index = TestIndex::random(20, 4, Metric::l2);
        load(client, index, build(client, index));
        test_method_state().cost = 1e9;
        test_method_state().query_us = 5;
        std::vector<std::thread> threads;
        for (int session = 0; session < 4; ++session) {
            threads.emplace_back([&, session] {
                try {
                    EngineClient own(server->path());
                    const std::uint32_t count = session % 2 == 0 ? 1 : 1500;
                    const std::vector<float> queries(std::size_t{4} * count);
                    const SearchRequest request = search_request(index, 2, count);
                    while (true) {
                        for (int i = 0; i < 3; ++i) {
                            own.send(MessageType::search, EngineClient::bytes_of(request),
                                     EngineClient::bytes_of_all(queries));
                        }
                        for (int i = 0; i < 3; ++i) decode_outcome(own.receive());
                    }
                } catch (const std::exception&) {
                    // The engine has gone.
                }
            });
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
        if (round == 0) test_method_state().held = true;
        server->server().stop("test");
        server->join();
        test_method_state().held = false;
        server.reset();
        for (std::thread& thread : threads) thread.join();
        test_method_state().reset();
    }
}

}  // namespace
}  // namespace pgwarp
