// Whom an engine serves, and what it tells of itself: incarnations, versions, its status, its socket.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

TEST(EngineGreetings, AnotherIncarnationDropsEverything)
{
    TestServer server;
    EngineClient old(server.path(), 1);
    const TestIndex index = TestIndex::random(10, 4, Metric::l2);
    const BuiltIndex built = build(old, index);
    load(old, index, built);
    EngineClient same(server.path(), 1);
    EXPECT_EQ(search(same, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::answered);
    EngineClient after(server.path(), 2);
    EXPECT_EQ(search(after, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::need_load);
    EXPECT_TRUE(old.is_closed_within(5000));
    EXPECT_TRUE(same.is_closed_within(5000));
    load(after, index, built);
    EXPECT_EQ(search(after, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::answered);
}

ErrorCode greet_with_another_version(EngineClient& client)
{
    HelloRequest hello{};
    hello.version = protocol_version + 1;
    std::strcpy(hello.build, build_name);
    try {
        client.call(MessageType::hello, EngineClient::bytes_of(hello));
    } catch (const EngineError& error) {
        return error.code;
    }
    return ErrorCode::internal;
}

TEST(EngineGreetings, AnotherVersionDrainsAnEngineThatWasReplaced)
{
    TestServer server;
    EngineClient old(server.path(), 1, false);
    EXPECT_EQ(greet_with_another_version(old), ErrorCode::other_version);
    EXPECT_FALSE(server.engine().draining()) << "this engine is the one installed";
    EngineClient current(server.path());
    current.call(MessageType::status);

    server.engine().was_replaced = [] { return true; };
    EngineClient client(server.path(), 1, false);
    EXPECT_EQ(greet_with_another_version(client), ErrorCode::other_version);
    server.join();
    EXPECT_TRUE(client.is_closed_within(1000));
}

TEST(EngineGreetings, StatusAndRelease)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(100, 4, Metric::l2);
    load(client, index, build(client, index));
    search(client, search_request(index, 3, 2), std::vector<float>(8));
    const ClientReply reply = client.call(MessageType::status);
    const auto status = reply.as<StatusReply>();
    ASSERT_EQ(status.mirror_count, 1U);
    EXPECT_EQ(status.process_id, ::getpid());
    EXPECT_EQ(status.connections, 1U);
    EXPECT_GT(status.memory_allowed, 0U);
    const auto mirror = reply.array_at<MirrorStatus>(sizeof(StatusReply), 1)[0];
    EXPECT_EQ(mirror.key, index.key);
    EXPECT_EQ(mirror.rows, 100U);
    EXPECT_EQ(mirror.searches, 2U);
    EXPECT_EQ(mirror.batches, 1U);
    EXPECT_EQ(mirror.widest_batch, 2U);
    EXPECT_GT(mirror.engine_ns, 0U);
    EXPECT_GE(mirror.answer_ns, 2 * mirror.engine_ns + mirror.queue_ns);
    EXPECT_EQ(mirror.bytes, status.memory_used);
    client.call(MessageType::release, EngineClient::bytes_of(MirrorRequest{index.key}));
    EXPECT_EQ(client.call(MessageType::status).as<StatusReply>().mirror_count, 0U);
    EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).reply.status, SearchStatus::need_load);
}

TEST(EngineGreetings, SocketIsItsOwnersAlone)
{
    TestServer server;
    struct stat status {
    };
    ASSERT_EQ(::stat(server.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

}  // namespace
}  // namespace pgwarp
