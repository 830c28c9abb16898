// Random and mutated frames, into the parser and into a live server: only their sender is dropped. Deterministic.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>

#include "engine/server/decode.h"
#include "engine_fixture.h"
#include "methods/description.h"

namespace pgwarp
{
namespace
{

using Random = std::mt19937_64;

constexpr MessageType request_types[] = {
    MessageType::hello,          MessageType::search,        MessageType::load_begin,      MessageType::load_chunk,
    MessageType::load_end,       MessageType::load_delta,    MessageType::load_tombstones, MessageType::build_begin,
    MessageType::build_rows,     MessageType::build_run,     MessageType::build_read,      MessageType::build_end,
    MessageType::lease_buffer,   MessageType::return_buffer, MessageType::status,          MessageType::release,
    MessageType::search_indexes, MessageType::build_array,   MessageType::load_prepare,    MessageType::load_tids};

template <class T>
void append(std::vector<std::byte>& bytes, const T& value)
{
    const auto more = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), more.begin(), more.end());
}

// Of two queries, a predicate for each, with a value and two ranges.
void append_filtered_search(std::vector<std::byte>& bytes, const TestIndex& index)
{
    const std::vector<std::uint64_t> words{1, 0 | std::uint64_t{1} << 32, 5, 5, 1, 1 | std::uint64_t{2} << 32, 0, 7, 9,
                                           9};
    SearchRequest request = search_request(index, 3, 2);
    request.predicates = {2, static_cast<std::uint32_t>(words.size())};
    append(bytes, request);
    bytes.resize(bytes.size() + 2 * index.shape.dimensions * sizeof(float));
    bytes.resize((bytes.size() + 7) / 8 * 8);
    for (const std::uint64_t word : words) append(bytes, word);
    for (const std::uint32_t name : {1U, 0U}) append(bytes, name);
}

// The same queries' predicates in two indexes.
void append_filtered_search_of_indexes(std::vector<std::byte>& bytes, const TestIndex& index)
{
    std::vector<std::byte> one;
    append_filtered_search(one, index);
    SearchIndexesRequest request{};
    request.index_count = 2;
    request.query_count = 2;
    request.dimensions = index.shape.dimensions;
    request.predicates = {2, 10};
    append(bytes, request);
    for (int i = 0; i < 2; ++i) {
        IndexTarget target{};
        target.key = index.key;
        target.k = 3;
        append(bytes, target);
    }
    bytes.insert(bytes.end(), one.begin() + sizeof(SearchRequest), one.end());
}

// A valid request, from which mutations start. An odd token makes a search with predicates, which only the decoder
// takes: the index has no attributes.
std::vector<std::byte> right_payload(MessageType type, const TestIndex& index, std::uint64_t token)
{
    std::vector<std::byte> bytes;
    const std::vector<std::byte> row(index.shape.dimensions * sizeof(float));
    const auto add_rows = [&](std::size_t rows) {
        for (std::size_t i = 0; i < rows; ++i) append(bytes, Tid{1, 1, 0});
        for (std::size_t i = 0; i < rows; ++i) bytes.insert(bytes.end(), row.begin(), row.end());
    };
    switch (type) {
        case MessageType::hello: {
            HelloRequest hello{};
            hello.version = protocol_version;
            hello.incarnation = 1;
            std::strcpy(hello.build, build_name);
            append(bytes, hello);
            break;
        }
        case MessageType::search:
            if (token % 2 == 0) {
                SearchRequest search = search_request(index, 3, 2);
                search.tids = token / 2 % 4;
                append(bytes, search);
                for (int i = 0; i < 2; ++i) bytes.insert(bytes.end(), row.begin(), row.end());
            } else {
                append_filtered_search(bytes, index);
            }
            break;
        case MessageType::search_indexes: {
            if (token % 2 == 1) {
                append_filtered_search_of_indexes(bytes, index);
                break;
            }
            SearchIndexesRequest many{};
            many.index_count = 2;
            many.query_count = 1;
            many.dimensions = index.shape.dimensions;
            append(bytes, many);
            for (int i = 0; i < 2; ++i) {
                IndexTarget target{};
                target.key = index.key;
                target.k = 3;
                append(bytes, target);
            }
            bytes.insert(bytes.end(), row.begin(), row.end());
            break;
        }
        case MessageType::load_begin: {
            LoadBeginRequest load{};
            load.key = index.key;
            load.shape = index.shape;
            load.array_count = 3;
            append(bytes, load);
            const std::pair<const char*, ArrayType> arrays[] = {
                {array_tid_block, ArrayType::u32}, {array_tid_offset, ArrayType::u16}, {"vectors", ArrayType::f32}};
            for (const auto& [name, array_type] : arrays) {
                ArrayShape array{};
                std::strcpy(array.name, name);
                array.type = array_type;
                array.width = 1;
                append(bytes, array);
            }
            break;
        }
        case MessageType::load_chunk:
            append(bytes, LoadChunkRequest{index.key, 2, no_buffer, 0, 0, 16});
            bytes.resize(bytes.size() + 16);
            break;
        case MessageType::load_delta:
            append(bytes, LoadDeltaRequest{index.key, 0, 1, 3});
            add_rows(3);
            break;
        case MessageType::load_tombstones: {
            LoadTombstonesRequest piece{};
            piece.key = index.key;
            piece.version = 1;
            piece.source = 1;
            piece.count = 4;
            append(bytes, piece);
            bytes.resize(bytes.size() + 32);
            break;
        }
        case MessageType::load_tids:
            append(bytes, LoadTidsRequest{1 + token % 3, 0, 3, 1});
            for (const std::uint64_t word : {std::uint64_t{1}, 2 | std::uint64_t{1} << 32, std::uint64_t{5}})
                append(bytes, word);
            break;
        case MessageType::build_begin: {
            BuildBeginRequest begin{};
            begin.shape = index.shape;
            append(bytes, begin);
            break;
        }
        case MessageType::build_rows:
            append(bytes, BuildRowsRequest{token, 2, no_buffer, 0, 0});
            add_rows(2);
            break;
        case MessageType::build_array: {
            BuildArrayRequest array{};
            array.token = token;
            std::strcpy(array.shape.name, "vectors");
            array.shape.type = ArrayType::f32;
            array.shape.rows = 4;
            array.shape.width = 1;
            array.length = 16;
            append(bytes, array);
            bytes.resize(bytes.size() + 16);
            break;
        }
        case MessageType::build_run:
        case MessageType::build_end:
            append(bytes, BuildRequest{token});
            break;
        case MessageType::build_read:
            append(bytes, BuildReadRequest{token, 0, no_buffer, 0, 0, 16});
            break;
        case MessageType::lease_buffer:
            append(bytes, LeaseBufferRequest{BufferPurpose::bulk, 5});
            break;
        case MessageType::return_buffer:
            append(bytes, ReturnBufferRequest{0, 0});
            break;
        case MessageType::load_end:
        case MessageType::load_prepare:
        case MessageType::release:
            append(bytes, MirrorRequest{index.key});
            break;
        default:
            break;
    }
    return bytes;
}

// Numbers at which checks of limits tend to fail.
std::uint64_t awkward(Random& random)
{
    constexpr std::uint64_t values[] = {0,
                                        1,
                                        2,
                                        7,
                                        16,
                                        255,
                                        1U << 16,
                                        0x7fffffffU,
                                        0xffffffffU,
                                        1ULL << 32,
                                        1ULL << 48,
                                        0x7fffffffffffffffULL,
                                        0xffffffffffffffffULL,
                                        0xfffffffffffffff8ULL};
    return random() % 4 == 0 ? random() : values[random() % std::size(values)];
}

void mutate(std::vector<std::byte>& bytes, Random& random)
{
    const std::uint64_t changes = random() % 4;
    for (std::uint64_t i = 0; i < changes; ++i) {
        const std::uint64_t kind = random() % 5;
        if (kind == 0) {
            bytes.resize(random() % (bytes.size() + 40));
        } else if (bytes.size() >= 8 && kind <= 2) {
            const std::uint64_t value = awkward(random);
            const std::size_t width = kind == 1 ? 4 : 8;
            std::memcpy(bytes.data() + random() % (bytes.size() / width) * width, &value, width);
        } else if (!bytes.empty()) {
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        }
    }
}

// A test build's engine aborts on a request with that fault, so mutations must not set it.
void ask_for_no_crash(MessageType type, std::vector<std::byte>& payload)
{
    if (type != MessageType::search && type != MessageType::search_indexes) return;
    const std::size_t at =
        type == MessageType::search ? offsetof(SearchRequest, fault) : offsetof(SearchIndexesRequest, fault);
    std::uint16_t fault = 0;
    if (payload.size() < at + sizeof(fault)) return;
    std::memcpy(&fault, payload.data() + at, sizeof(fault));
    if (fault == static_cast<std::uint16_t>(Fault::crash)) std::memset(payload.data() + at, 0, sizeof(fault));
}

void decode_any(MessageType type, Bytes payload)
{
    switch (type) {
        case MessageType::hello:
            decode_hello(payload);
            break;
        case MessageType::search:
            decode_search(payload);
            break;
        case MessageType::search_indexes:
            decode_search_indexes(payload);
            break;
        case MessageType::load_begin:
            decode_load_begin(payload);
            break;
        case MessageType::load_chunk:
            decode_load_chunk(payload);
            break;
        case MessageType::load_delta:
            decode_load_delta(payload);
            break;
        case MessageType::load_tombstones:
            decode_load_tombstones(payload);
            break;
        case MessageType::load_tids:
            decode_load_tids(payload);
            break;
        case MessageType::build_array:
            decode_build_array(payload);
            break;
        case MessageType::build_begin:
            decode_build_begin(payload);
            break;
        case MessageType::build_rows:
            decode_build_rows(payload);
            break;
        case MessageType::build_run:
        case MessageType::build_end:
            decode_build(payload);
            break;
        case MessageType::build_read:
            decode_build_read(payload);
            break;
        case MessageType::lease_buffer:
            decode_lease_buffer(payload);
            break;
        case MessageType::return_buffer:
            decode_return_buffer(payload);
            break;
        case MessageType::load_end:
        case MessageType::load_prepare:
        case MessageType::release:
            decode_mirror(payload);
            break;
        default:
            break;
    }
}

TEST(EngineFuzz, DecodersAcceptWhatIsRightAndThrowOtherwise)
{
    const TestIndex index = TestIndex::random(10, 4, Metric::l2);
    for (MessageType type : request_types) EXPECT_NO_THROW(decode_any(type, right_payload(type, index, 5)));
    EXPECT_NO_THROW(decode_any(MessageType::search, right_payload(MessageType::search, index, 4)));
    Random random(1);
    std::size_t accepted = 0;
    std::size_t refused = 0;
    for (int i = 0; i < 200000; ++i) {
        const MessageType type = request_types[random() % std::size(request_types)];
        std::vector<std::byte> payload = right_payload(type, index, random() % 2);
        mutate(payload, random);
        try {
            decode_any(type, payload);
            ++accepted;
        } catch (const Malformed&) {
            ++refused;
        }
    }
    EXPECT_GT(accepted, 10000U);
    EXPECT_GT(refused, 10000U);
}

TEST(EngineFuzz, ReaderHoldsItsLimits)
{
    Random random(2);
    for (int i = 0; i < 3000; ++i) {
        FrameReader reader;
        try {
            for (int j = 0; j < 50; ++j) {
                const auto space = reader.space();
                ASSERT_FALSE(space.empty());
                ASSERT_LE(space.size(), max_payload + 65536U);
                const std::size_t bytes = random() % std::min<std::size_t>(space.size(), 200) + 1;
                for (std::size_t b = 0; b < bytes; ++b) space[b] = static_cast<std::byte>(random());
                if (random() % 2 == 0 && bytes >= sizeof(MessageHeader)) {
                    MessageHeader header{};
                    header.magic = protocol_magic;
                    header.type = static_cast<std::uint16_t>(1 + random() % 18);
                    header.payload_bytes =
                        static_cast<std::uint32_t>(random() % 3 == 0 ? awkward(random) : random() % 300);
                    std::memcpy(space.data(), &header, sizeof(header));
                }
                reader.filled(bytes);
                while (reader.next()) {
                }
            }
        } catch (const Malformed&) {
        }
    }
}

// The server still answers a valid search.
void expect_served(const TestServer& server, const TestIndex& index, const BuiltIndex& built)
{
    EngineClient client(server.path());
    const std::vector<float> query(index.shape.dimensions);
    SearchOutcome outcome = search(client, search_request(index, 3), query);
    if (outcome.reply.status == SearchStatus::need_load) {
        load(client, index, built);
        outcome = search(client, search_request(index, 3), query);
    }
    // A mutated load may hold the key until its connection is closed.
    EXPECT_TRUE(outcome.reply.status == SearchStatus::answered) << static_cast<int>(outcome.reply.status);
}

TEST(EngineFuzz, EachKindOfMalformedMessageDropsItsSenderAlone)
{
    TestServer server;
    const TestIndex index = TestIndex::random(50, 4, Metric::l2);
    EngineClient client(server.path());
    const BuiltIndex built = build(client, index);
    load(client, index, built);
    const auto dropped = [&](const char* what, bool greet, MessageType type, std::vector<std::byte> payload,
                             std::uint32_t magic = protocol_magic) {
        EngineClient bad(server.path(), 1, greet);
        MessageHeader header{};
        header.magic = magic;
        header.type = static_cast<std::uint16_t>(type);
        header.payload_bytes = static_cast<std::uint32_t>(payload.size());
        bad.send_raw(EngineClient::bytes_of(header));
        try {
            bad.send_raw(payload);
        } catch (const ConnectionLost&) {
        }
        EXPECT_TRUE(bad.is_closed_within(5000)) << what;
        EXPECT_EQ(search(client, search_request(index, 3), std::vector<float>(4)).results.size(), 3U) << what;
    };
    dropped("magic", true, MessageType::status, {}, 0x12345678);
    dropped("unknown type", true, static_cast<MessageType>(999), {});
    dropped("a reply", true, MessageType::acknowledge, {});
    dropped("before the greeting", false, MessageType::status, {});
    dropped("greeted twice", true, MessageType::hello, right_payload(MessageType::hello, index, 0));
    dropped("too long", true, MessageType::search, std::vector<std::byte>(max_payload + 1));
    std::vector<std::pair<MessageType, std::uint64_t>> requests{{MessageType::search, 1}};
    for (MessageType type : request_types) requests.emplace_back(type, 0);
    for (const auto& [type, token] : requests) {
        std::vector<std::byte> payload = right_payload(type, index, token);
        const bool greet = type != MessageType::hello;
        payload.push_back({});
        dropped("one byte more", greet, type, payload);
        payload.pop_back();
        if (payload.empty()) continue;
        payload.pop_back();
        dropped("one byte less", greet, type, payload);
        dropped("a stub", greet, type, std::vector<std::byte>(4));
    }
}

TEST(EngineFuzz, LiveServerSurvivesMutatedConversations)
{
    EngineOptions options;
    options.memory = 64 << 20;
    TestServer server(options);
    const TestIndex index = TestIndex::random(50, 4, Metric::l2);
    auto keeper = std::make_unique<EngineClient>(server.path());
    const BuiltIndex built = build(*keeper, index);
    load(*keeper, index, built);
    Random random(3);
    for (int conversation = 0; conversation < 400; ++conversation) {
        EngineClient client(server.path());
        const std::uint64_t token = begin_build(client, index);
        TestIndex target = index;
        if (random() % 2 == 0) target.key.relation = 100 + static_cast<std::uint32_t>(random() % 3);
        try {
            for (int message = 0; message < 30; ++message) {
                MessageType type = request_types[1 + random() % (std::size(request_types) - 1)];
                if (type == MessageType::release && target.key == index.key) type = MessageType::status;
                std::vector<std::byte> payload = right_payload(type, target, token);
                mutate(payload, random);
                ask_for_no_crash(type, payload);
                client.send(type, payload);
            }
        } catch (const ConnectionLost&) {
        }
        if (random() % 2 == 0) client.is_closed_within(1);
        client.close();
        if (conversation % 20 == 0) expect_served(server, index, built);
    }
    for (int i = 0; i < 100; ++i) {
        EngineClient client(server.path(), 1, random() % 2 == 0);
        std::vector<std::byte> noise(random() % 5000);
        for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
        try {
            client.send_raw(noise);
        } catch (const ConnectionLost&) {
        }
    }
    expect_served(server, index, built);
}

}  // namespace
}  // namespace pgwarp
