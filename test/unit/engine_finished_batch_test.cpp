// Answers of batches on their way to sessions: sessions that leave, engines that end, replies that find no memory.
#include "engine/search/finished_batch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <random>
#include <thread>
#include <type_traits>

#include "engine/server/connection.h"
#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

bool eventually(const std::function<bool()>& condition)
{
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

// Members move when their vector grows; spans of a copied one would lie in freed memory.
static_assert(std::is_nothrow_move_constructible_v<WaitingSearch>);

class EngineFinishedBatch : public testing::Test
{
protected:
    void SetUp() override { reset(); }
    void TearDown() override { reset(); }
    static void reset()
    {
        TestMethodState& state = test_method_state();
        state.query_us = 0;
        state.slow_ms = 0;
        state.held = false;
        state.cost = 1.0;
        state.searches = 0;
        state.cancelled = 0;
    }
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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Limits the process to as many bytes of address space beyond those that it has.
class LittleMemory
{
public:
    explicit LittleMemory(std::uint64_t bytes)
    {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        ::getrlimit(RLIMIT_AS, &before_);
        rlimit limit = before_;
        limit.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
        ::setrlimit(RLIMIT_AS, &limit);
    }
    ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

// The rest of a reply does not fit in memory after the socket took its first bytes: another frame must not follow.
TEST_F(EngineFinishedBatch, AReplyThatCannotBeKeptEndsItsConnection)
{
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    Connection connection(FileDescriptor(ends[0]), 1);
    const FileDescriptor peer(ends[1]);
    const std::vector<std::byte> large(std::size_t{256} << 20);
    const LittleMemory limit(std::uint64_t{16} << 20);
    EXPECT_FALSE(connection.send(MessageType::reply, 1, 0, {}, large));
    EXPECT_EQ(connection.unsent(), 0U);
    // Nothing of this frame has gone: the caller may send another one.
    EXPECT_THROW(connection.send(MessageType::reply, 2, 0, {}, large), std::bad_alloc);
}
#endif

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
                struct Asked {
                    std::uint64_t id;
                    const TestIndex* index;
                    SearchRequest request;
                    std::vector<float> queries;
                };
                std::vector<Asked> asked;
                for (std::size_t i = 0; i < 1 + random() % 5; ++i) {
                    const TestIndex& index = indexes[random() % 2];
                    const std::uint32_t count = random() % 3 == 0 ? 200 + random() % 800 : 1 + random() % 3;
                    SearchRequest request = search_request(index, random() % 4 == 0 ? 0 : 1 + random() % 3, count);
                    if (request.k == 0) request.k = 1;
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
                    const Asked& mine = asked[which];
                    const std::size_t count = mine.queries.size() / 4;
                    bool same = outcome.results.size() == count * mine.request.k;
                    same = same && outcome.places.size() == (mine.request.want_places ? outcome.results.size() : 0);
                    for (std::size_t q = 0; same && q < count; q += 1 + count / 20) {
                        const auto truth = brute_force(*mine.index, mine.queries.data() + 4 * q, mine.request.k);
                        for (std::size_t j = 0; same && j < mine.request.k; ++j) {
                            const Result& result = outcome.results[q * mine.request.k + j];
                            same = result.tid == mine.index->tids[truth[j].second];
                            if (mine.request.want_places)
                                same = same && outcome.places[q * mine.request.k + j] == truth[j].second;
                        }
                    }
                    ++(same ? right : wrong);
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
        reset();
    }
}

}  // namespace
}  // namespace pgwarp
