// Transfer buffers: what they carry, and who gets them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

TEST(EngineBuffers, CarryRowsArraysAndChunks)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = TestIndex::random(5000, 32, Metric::l2);
    const LeaseBufferRequest want{BufferPurpose::bulk, 0};
    const ClientReply lease = client.call(MessageType::lease_buffer, EngineClient::bytes_of(want));
    const auto granted = lease.as<LeaseBufferReply>();
    ASSERT_NE(granted.buffer, no_buffer);
    ASSERT_TRUE(lease.descriptor);
    EXPECT_NE(::ftruncate(lease.descriptor.get(), 0), 0) << "the buffer is sealed";
    auto* map = static_cast<std::byte*>(
        ::mmap(nullptr, granted.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, lease.descriptor.get(), 0));
    ASSERT_NE(map, MAP_FAILED);

    const std::uint64_t token = begin_build(client, index);
    const std::uint64_t vectors_at = index.rows() * sizeof(Tid);
    std::memcpy(map, index.tids.data(), vectors_at);
    std::memcpy(map + vectors_at, index.vectors.data(), index.vectors.size() * sizeof(float));
    BuildRowsRequest rows{token, static_cast<std::uint32_t>(index.rows()), granted.buffer, 0, vectors_at};
    client.call(MessageType::build_rows, EngineClient::bytes_of(rows));
    const BuildRequest run{token};
    const ClientReply done = client.call(MessageType::build_run, EngineClient::bytes_of(run));
    BuiltIndex built;
    built.reply = done.as<BuildRunReply>();
    built.arrays = done.array_at<ArrayShape>(sizeof(BuildRunReply), built.reply.array_count);
    ASSERT_EQ(begin_load(client, index, built), LoadGrant::granted);
    for (std::uint32_t i = 0; i < built.arrays.size(); ++i) {
        const std::uint64_t bytes = built.arrays[i].bytes();
        BuildReadRequest read{token, i, granted.buffer, 64, 0, bytes};
        EXPECT_TRUE(client.call(MessageType::build_read, EngineClient::bytes_of(read)).payload.empty());
        LoadChunkRequest chunk{index.key, i, granted.buffer, 64, 0, bytes};
        client.call(MessageType::load_chunk, EngineClient::bytes_of(chunk));
    }
    end_load(client, index);
    const auto query = index.random_rows(1, 5);
    expect_nearest(index, query.data(), search(client, search_request(index, 7), query).results, 7);

    LoadChunkRequest past{index.key, 0, granted.buffer, granted.bytes - 4, 0, 8};
    EXPECT_THROW(client.call(MessageType::load_chunk, EngineClient::bytes_of(past)), EngineError);
    const ReturnBufferRequest back{granted.buffer, 0};
    client.call(MessageType::return_buffer, EngineClient::bytes_of(back));
    EXPECT_THROW(client.call(MessageType::return_buffer, EngineClient::bytes_of(back)), EngineError);
    ::munmap(map, granted.bytes);
}

TEST(EngineBuffers, LeasesWaitAreReclaimedAndSomeAreKeptForQueries)
{
    TestServer server;
    auto hog = std::make_unique<EngineClient>(server.path());
    EngineClient other(server.path());
    const LeaseBufferRequest bulk{BufferPurpose::bulk, 0};
    for (std::uint32_t i = 0; i < bulk_buffers; ++i) {
        EXPECT_NE(hog->call(MessageType::lease_buffer, EngineClient::bytes_of(bulk)).as<LeaseBufferReply>().buffer,
                  no_buffer);
    }
    const ClientReply none = other.call(MessageType::lease_buffer, EngineClient::bytes_of(bulk));
    EXPECT_EQ(none.as<LeaseBufferReply>().buffer, no_buffer);
    EXPECT_FALSE(none.descriptor);
    const LeaseBufferRequest query{BufferPurpose::query, 0};
    EXPECT_NE(other.call(MessageType::lease_buffer, EngineClient::bytes_of(query)).as<LeaseBufferReply>().buffer,
              no_buffer);
    const LeaseBufferRequest brief{BufferPurpose::bulk, 30};
    EXPECT_EQ(other.call(MessageType::lease_buffer, EngineClient::bytes_of(brief)).as<LeaseBufferReply>().buffer,
              no_buffer);
    const LeaseBufferRequest patient{BufferPurpose::bulk, 10000};
    const std::uint64_t id = other.send(MessageType::lease_buffer, EngineClient::bytes_of(patient));
    hog.reset();
    EXPECT_NE(other.wait(id).as<LeaseBufferReply>().buffer, no_buffer);
}

}  // namespace
}  // namespace pgwarp
