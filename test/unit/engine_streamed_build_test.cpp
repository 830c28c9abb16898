// Builds whose rows stream: the sample, then rows of several connections, in place of gathered rows.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "address_space_limit.h"
#include "engine_fixture.h"
#include "protocol/build_sample.h"

namespace pgwarp::streamed_build_test
{
namespace
{

constexpr std::uint32_t dimensions = 24;
constexpr std::size_t rows = 4000;

TestIndex random_index()
{
    return TestIndex::random(rows, dimensions, Metric::l2, Method::pqtree);
}

struct Begun {
    std::uint64_t token;
    std::uint64_t wanted;
};

Begun begin(EngineClient& client, const TestIndex& index, std::uint64_t expected)
{
    BuildBeginRequest request{};
    request.shape = index.shape;
    request.options = index.options;
    request.expected_rows = expected;
    const ClientReply reply = client.call(MessageType::build_begin, EngineClient::bytes_of(request));
    return {reply.as<BuildBeginReply>().token, reply.array_at<BuildSample>(sizeof(BuildBeginReply), 1)[0].wanted_rows};
}

void give(EngineClient& client, std::uint64_t token, const ArrayShape& shape, std::span<const std::byte> bytes)
{
    const BuildArrayRequest request{token, shape, 0, bytes.size()};
    client.call(MessageType::build_array, EngineClient::bytes_of(request), bytes);
}

// Sends every fourth row, in pieces of 100.
void give_sample(EngineClient& client, const TestIndex& index, std::uint64_t token)
{
    constexpr std::uint32_t width = sizeof(Tid) + sizeof(float) * dimensions;
    std::vector<std::byte> piece;
    for (std::size_t i = 0; i < index.rows(); i += 4) {
        const auto tid = std::as_bytes(std::span(&index.tids[i], 1));
        const auto row = std::as_bytes(std::span(index.row(i), dimensions));
        piece.insert(piece.end(), tid.begin(), tid.end());
        piece.insert(piece.end(), row.begin(), row.end());
        if (piece.size() < 100 * width) continue;
        give(client, token, make_array_shape(array_sample_rows, ArrayType::u8, piece.size() / width, width), piece);
        piece.clear();
    }
}

void end_sample(EngineClient& client, std::uint64_t token)
{
    const std::uint64_t all = rows;
    give(client, token, make_array_shape(array_sample_of, ArrayType::u64, 1, 1), EngineClient::bytes_of(all));
}

TestIndex part_of(const TestIndex& index, std::size_t first, std::size_t count)
{
    TestIndex part = index;
    const auto at = static_cast<std::ptrdiff_t>(first);
    const auto some = static_cast<std::ptrdiff_t>(count);
    part.tids.assign(index.tids.begin() + at, index.tids.begin() + at + some);
    part.vectors.assign(index.vectors.begin() + at * dimensions, index.vectors.begin() + (at + some) * dimensions);
    return part;
}

// The share of the rows that are the nearest of themselves.
double found_themselves(EngineClient& client, const TestIndex& index)
{
    double found = 0;
    for (std::size_t i = 0; i < index.rows(); i += 20) {
        const std::vector<float> query(index.row(i), index.row(i) + dimensions);
        const SearchOutcome outcome = search(client, search_request(index, 10), query);
        const Tid& tid = outcome.results.at(0).tid;
        found += tid.block == index.tids[i].block && tid.offset == index.tids[i].offset ? 1 : 0;
    }
    return found / (static_cast<double>(index.rows()) / 20);
}

TEST(EngineStreamedBuild, MakesTheIndexOfItsRows)
{
    TestServer server;
    EngineClient owner(server.path());
    EngineClient worker(server.path());
    const TestIndex index = random_index();
    const Begun begun = begin(owner, index, 1000000);
    EXPECT_GT(begun.wanted, 8000U);
    give_sample(owner, index, begun.token);
    end_sample(owner, begun.token);
    // Two connections, the later rows first.
    send_rows(worker, part_of(index, 1500, rows - 1500), begun.token);
    send_rows(owner, part_of(index, 0, 1500), begun.token);
    const BuildRequest run{begun.token};
    const BuiltIndex built =
        read_build(worker, begun.token, owner.call(MessageType::build_run, EngineClient::bytes_of(run)));
    EXPECT_EQ(built.reply.rows, rows);
    EXPECT_GT(built.reply.calibration.count, 2U);
    const auto* blocks = reinterpret_cast<const std::uint32_t*>(built.bytes[0].data());
    const auto* offsets = reinterpret_cast<const std::uint16_t*>(built.bytes[1].data());
    for (std::size_t i = 0; i < rows; ++i) {
        ASSERT_EQ(blocks[i], index.tids[i].block);
        ASSERT_EQ(offsets[i], index.tids[i].offset);
    }
    TestIndex stored = index;
    stored.options = built.reply.options;
    load(owner, stored, built);
    EXPECT_EQ(found_themselves(owner, stored), 1);
    // Rows after the end.
    EXPECT_THROW(send_rows(owner, part_of(index, 0, 10), begun.token), EngineError);
}

// A sample that is not ended, or none, leaves a build of gathered rows.
TEST(EngineStreamedBuild, GathersWithoutASample)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = random_index();
    EXPECT_EQ(begin(client, index, 20000).wanted, 0U);
    const BuiltIndex usual = build(client, index);
    for (const bool begins : {false, true}) {
        const Begun begun = begin(client, index, 1000000);
        if (begins) give_sample(client, index, begun.token);
        send_rows(client, index, begun.token);
        const BuildRequest run{begun.token};
        const BuiltIndex built =
            read_build(client, begun.token, client.call(MessageType::build_run, EngineClient::bytes_of(run)));
        EXPECT_EQ(built.bytes, usual.bytes);
    }
    // Other methods want none.
    TestIndex other = index;
    other.shape.method = Method::ivfadc;
    EXPECT_EQ(begin(client, other, 1000000).wanted, 0U);
    EXPECT_THROW(end_sample(client, begin(client, other, 1000000).token), EngineError);
}

TEST(EngineStreamedBuild, RefusesWhatNoSampleIs)
{
    TestServer server;
    EngineClient client(server.path());
    TestIndex index = random_index();
    const Begun begun = begin(client, index, 1000000);
    EXPECT_THROW(end_sample(client, begun.token), EngineError) << "no rows";
    const std::vector<std::byte> few(50);
    EXPECT_THROW(give(client, begun.token, make_array_shape(array_sample_rows, ArrayType::u8, 1, 50), few),
                 EngineError);
    // Times the 104 bytes of a row, modulo 2^64, this is 8.
    constexpr std::uint64_t wraps = 1064235235021704901;
    EXPECT_THROW(give(client, begun.token, make_array_shape(array_sample_rows, ArrayType::u8, wraps, 0),
                      std::span(few).first(8)),
                 EngineError);
    TestIndex bad = index;
    bad.vectors[5] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(give_sample(client, bad, begun.token), EngineError);
    give_sample(client, index, begun.token);
    end_sample(client, begun.token);
    EXPECT_THROW(give_sample(client, index, begun.token), EngineError) << "after its end";
    // The build has lost rows: without them it would make another index.
    EXPECT_THROW(send_rows(client, bad, begun.token), EngineError);
    const BuildRequest run{begun.token};
    EXPECT_THROW(client.call(MessageType::build_run, EngineClient::bytes_of(run)), EngineError);
    // After rows that were gathered there is no sample.
    const Begun gathered = begin(client, index, 1000000);
    send_rows(client, index, gathered.token);
    EXPECT_THROW(give_sample(client, index, gathered.token), EngineError);
}

#ifdef PGWARP_LIMITS_ADDRESS_SPACE
// Each form in which rows are kept reserves much address space. Where a stream finds too little, rows are gathered.
TEST(EngineStreamedBuild, GathersWhereAddressSpaceIsShort)
{
    TestServer server;
    EngineClient client(server.path());
    const TestIndex index = random_index();
    const BuiltIndex usual = build(client, index);
    const AddressSpaceLimit limit(std::uint64_t{40} << 30);
    const Begun begun = begin(client, index, 1000000);
    EXPECT_GT(begun.wanted, 0U);
    give_sample(client, index, begun.token);
    end_sample(client, begun.token);
    send_rows(client, index, begun.token);
    const BuildRequest run{begun.token};
    const BuiltIndex built =
        read_build(client, begun.token, client.call(MessageType::build_run, EngineClient::bytes_of(run)));
    EXPECT_EQ(built.bytes, usual.bytes);
}
#endif

}  // namespace
}  // namespace pgwarp::streamed_build_test
