// Lists that are none: offsets that descend or lead out of the message, words out of order, weights that are no
// numbers. Impossible blocks drop the sender, rows that no index holds are refused, and the engine goes on.
#include <gtest/gtest.h>

#include "engine/server/decode.h"
#include "methods/errors.h"
#include "overlap_method/overlap_client.h"

namespace pgwarp::test
{
namespace
{

constexpr std::uint32_t range = 100;

// A block of rows, to be spoilt.
struct Block {
    RowForm form{0, 0, RowLayout::weighted_lists, 0};
    std::vector<std::uint64_t> offsets = {0, 2, 2, 5};
    std::vector<std::uint32_t> words = {1, 7, 0, 3, 99};
    std::vector<float> weights = {1, 2, 3, 4, 5};

    std::uint32_t count() const { return static_cast<std::uint32_t>(offsets.size() - 1); }
    std::vector<std::byte> bytes() const
    {
        std::vector<std::byte> out;
        const auto add = [&out](const auto& values) {
            const auto bytes = std::as_bytes(std::span(values));
            out.insert(out.end(), bytes.begin(), bytes.end());
        };
        add(offsets);
        add(words);
        if (form.layout == RowLayout::weighted_lists) add(weights);
        return out;
    }
};

enum class Outcome { taken, refused, dropped };

struct Case {
    const char* name;
    Outcome outcome;
    void (*spoil)(Block&);
};

void plain(Block& block)
{
    block.form.layout = RowLayout::lists;
}

constexpr float infinite = std::numeric_limits<float>::infinity();

const Case cases[] = {
    {"as they should be", Outcome::taken, [](Block&) {}},
    {"no words at all", Outcome::taken,
     [](Block& block) {
         block.offsets.assign(4, 0);
         block.words.clear();
         block.weights.clear();
     }},
    {"offsets that descend", Outcome::dropped, [](Block& block) { block.offsets[1] = 4; }},
    {"a first offset of its own", Outcome::dropped, [](Block& block) { block.offsets[0] = 1; }},
    {"offsets beyond the words", Outcome::dropped, [](Block& block) { block.offsets[1] = block.offsets[2] = 900; }},
    {"an offset that overflows", Outcome::dropped, [](Block& block) { block.offsets[1] = ~std::uint64_t{0}; }},
    {"words that no row has", Outcome::dropped, [](Block& block) { block.offsets[3] = 4; }},
    {"more words than there are", Outcome::dropped, [](Block& block) { block.offsets[3] = 6; }},
    {"a number of words that is too large", Outcome::dropped, [](Block& block) { block.form.word_count = 6; }},
    {"a number of words that is huge", Outcome::dropped, [](Block& block) { block.form.word_count = 0xffffffffU; }},
    {"a number of words that is too small", Outcome::dropped, [](Block& block) { block.form.word_count = 1; }},
    {"words without weights", Outcome::dropped, [](Block& block) { block.words.insert(block.words.begin(), 2, 0); }},
    {"an unknown layout", Outcome::dropped, [](Block& block) { block.form.layout = static_cast<RowLayout>(3); }},
    {"too many attributes", Outcome::dropped, [](Block& block) { block.form.attribute_count = 33; }},
    {"attributes that don't come", Outcome::dropped, [](Block& block) { block.form.attribute_count = 1; }},
    {"lists without their weights", Outcome::refused, plain},
    {"words out of order", Outcome::refused, [](Block& block) { std::swap(block.words[0], block.words[1]); }},
    {"a word twice", Outcome::refused, [](Block& block) { block.words[1] = block.words[0]; }},
    {"a word out of range", Outcome::refused, [](Block& block) { block.words[4] = range; }},
    {"a weight that is not a number", Outcome::refused,
     [](Block& block) { block.weights[3] = std::numeric_limits<float>::quiet_NaN(); }},
    {"an infinite weight", Outcome::refused, [](Block& block) { block.weights[0] = -infinite; }},
    {"dense rows", Outcome::refused,
     [](Block& block) {
         block.form.layout = RowLayout::dense;
         block.weights.clear();
     }},
};

class HostileLists : public testing::Test
{
protected:
    HostileLists() : client_(server_.path())
    {
        index_.shape = list_shape(true, range);
        index_.key = {1, 2, 3, -1, 9, MirrorDevice::best, 0};
        rows_ = random_lists(40, 6, range, true, 8);
        load(client_, index_, build_lists(client_, index_, numbered_tids(0, 40), rows_.view()));
    }

    // Whether the engine takes, refuses or drops the request. `front`: the bytes before the rows.
    Outcome outcome_of(MessageType type, std::span<const std::byte> front, std::span<const std::byte> middle,
                       const Block& block)
    {
        EngineClient sender(server_.path());
        return outcome_of(sender, type, front, middle, block.bytes());
    }
    static Outcome outcome_of(EngineClient& sender, MessageType type, std::span<const std::byte> front,
                              std::span<const std::byte> middle, std::span<const std::byte> rest)
    {
        try {
            sender.call(type, front, middle, rest);
            return Outcome::taken;
        } catch (const EngineError& error) {
            EXPECT_EQ(error.code, ErrorCode::bad_request) << error.what();
            return Outcome::refused;
        } catch (const ConnectionLost&) {
            return Outcome::dropped;
        }
    }
    void expect_served()
    {
        const RowView query = rows_.view().row(5);
        const SearchOutcome found = search_lists(client_, list_request(index_, query, 3), query);
        ASSERT_EQ(found.results.size(), 3U);
    }
    // The words of a case. Their number is right, unless the case has spoilt it.
    static Block spoilt(const Case& one)
    {
        Block block;
        block.form.word_count = 0xabcdU;
        one.spoil(block);
        if (block.form.word_count == 0xabcdU)
            block.form.word_count =
                block.form.layout == RowLayout::dense ? 0 : static_cast<std::uint32_t>(block.words.size());
        return block;
    }
    // Dense rows have a width that the message's length gives.
    static std::uint32_t width_of(const Block& block)
    {
        return block.form.layout == RowLayout::dense ? static_cast<std::uint32_t>(block.bytes().size() / 12) : 0;
    }
    static void trim_dense(Block& block)
    {
        if (block.form.layout == RowLayout::dense) block.words.resize(4);
    }
    std::uint64_t begin()
    {
        BuildBeginRequest request{};
        request.shape = index_.shape;
        return client_.call(MessageType::build_begin, EngineClient::bytes_of(request)).as<BuildBeginReply>().token;
    }

    TestServer server_;
    EngineClient client_;
    TestIndex index_;
    OwnedRows rows_;
};

TEST_F(HostileLists, AsQueries)
{
    for (const Case& one : cases) {
        Block block = spoilt(one);
        trim_dense(block);
        SearchRequest request = search_request(index_, 2, block.count());
        request.dimensions = width_of(block);
        request.form = block.form;
        EXPECT_EQ(outcome_of(MessageType::search, EngineClient::bytes_of(request), {}, block), one.outcome) << one.name;
        SearchIndexesRequest many{};
        many.index_count = 1;
        many.query_count = block.count();
        many.dimensions = width_of(block);
        many.form = block.form;
        IndexTarget target{};
        target.key = index_.key;
        target.k = 2;
        EXPECT_EQ(outcome_of(MessageType::search_indexes, EngineClient::bytes_of(many), EngineClient::bytes_of(target),
                             block),
                  one.outcome)
            << one.name;
        expect_served();
    }
}

TEST_F(HostileLists, AsDeltaRows)
{
    for (const Case& one : cases) {
        Block block = spoilt(one);
        trim_dense(block);
        LoadDeltaRequest request{index_.key, 0, 0, block.count()};
        request.form = block.form;
        const std::vector<Tid> tids = numbered_tids(100, block.count());
        EXPECT_EQ(outcome_of(MessageType::load_delta, EngineClient::bytes_of(request), EngineClient::bytes_of_all(tids),
                             block),
                  one.outcome)
            << one.name;
        expect_served();
    }
}

TEST_F(HostileLists, AsRowsOfABuild)
{
    for (const Case& one : cases) {
        Block block = spoilt(one);
        trim_dense(block);
        BuildRowsRequest request{begin(), block.count(), no_buffer, 0, 0};
        request.form = block.form;
        const std::vector<Tid> tids = numbered_tids(0, block.count());
        EXPECT_EQ(outcome_of(MessageType::build_rows, EngineClient::bytes_of(request), EngineClient::bytes_of_all(tids),
                             block),
                  one.outcome)
            << one.name;
        expect_served();
    }
}

// Rows in a transfer buffer, which their sender can change while they are read: impossible rows are refused.
TEST_F(HostileLists, InATransferBuffer)
{
    const ClientReply leased =
        client_.call(MessageType::lease_buffer, EngineClient::bytes_of(LeaseBufferRequest{BufferPurpose::bulk, 1000}));
    const auto buffer = leased.as<LeaseBufferReply>();
    auto* const map = static_cast<std::byte*>(
        ::mmap(nullptr, buffer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, leased.descriptor.get(), 0));
    ASSERT_NE(map, MAP_FAILED);
    constexpr std::uint64_t rows_at = 64;
    for (const Case& one : cases) {
        // A malformed field of the request itself is found before any row is read.
        const Block block = spoilt(one);
        const bool too_long = block.form.word_count == 0xffffffffU;
        const bool impossible = block.form.layout > RowLayout::weighted_lists || block.form.attribute_count == 33;
        if (impossible || block.form.layout == RowLayout::dense) continue;
        const std::vector<Tid> tids = numbered_tids(0, block.count());
        const std::vector<std::byte> bytes = block.bytes();
        std::memset(map, 0xff, 4096);
        std::memcpy(map, tids.data(), tids.size() * sizeof(Tid));
        std::memcpy(map + rows_at, bytes.data(), bytes.size());
        BuildRowsRequest request{begin(), block.count(), buffer.buffer, 0, rows_at};
        request.form = block.form;
        const Outcome expected = one.outcome == Outcome::dropped || too_long ? Outcome::refused : one.outcome;
        EXPECT_EQ(outcome_of(client_, MessageType::build_rows, EngineClient::bytes_of(request), {}, {}), expected)
            << one.name;
        request.rows_offset = rows_at + 4;
        EXPECT_EQ(outcome_of(client_, MessageType::build_rows, EngineClient::bytes_of(request), {}, {}),
                  Outcome::refused);
        expect_served();
    }
    ::munmap(map, buffer.bytes);
}

// Arrays as pages may have them, when they were damaged.
TEST_F(HostileLists, InLoadedArrays)
{
    const OwnedRows lists = random_lists(30, 6, range, true, 5);
    const BuiltIndex good = build_lists(client_, index_, numbered_tids(0, 30), lists.view());
    index_.key.relation = 50;
    for (std::size_t array = 2; array < good.arrays.size(); ++array) {
        BuiltIndex bad = good;
        std::fill_n(bad.bytes[array].begin() + 8, 8, std::byte{0xff});
        ++index_.key.relation;
        ASSERT_EQ(begin_load(client_, index_, bad), LoadGrant::granted);
        send_arrays(client_, index_, bad);
        EXPECT_THROW(end_load(client_, index_), EngineError) << good.arrays[array].name;
    }
    for (const std::size_t array : {2U, 3U}) {
        BuiltIndex bad = good;
        bad.arrays[array].rows += 1;
        ++index_.key.relation;
        EXPECT_THROW(begin_load(client_, index_, bad), EngineError) << good.arrays[array].name;
    }
}

TEST_F(HostileLists, ARowHasAMostNumberOfWords)
{
    std::vector<std::uint32_t> words(max_list_words + 1);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i;
    const std::vector<float> weights(words.size(), 1.0F);
    IndexShape shape = index_.shape;
    shape.dimensions = 0;
    std::uint64_t offsets[2] = {0, max_list_words};
    RowView row;
    row.count = 1;
    row.offsets = offsets;
    row.words = words.data();
    row.weights = weights.data();
    EXPECT_EQ(lists_fault(row, shape), nullptr);
    EXPECT_LE(block_of(row).bytes() + sizeof(SearchRequest), max_payload);
    offsets[1] += 1;
    EXPECT_NE(lists_fault(row, shape), nullptr);
}

// An index of dense rows takes no lists, a method no shape that it doesn't know.
TEST_F(HostileLists, ForAnIndexOfDenseRows)
{
    TestIndex dense = TestIndex::random(20, 4, Metric::l2);
    load(client_, dense, build(client_, dense));
    const RowView query = rows_.view().row(1);
    SearchRequest request = list_request(dense, query, 2);
    EXPECT_THROW(search_lists(client_, request, query), EngineError);
    EXPECT_THROW(send_list_delta(client_, dense, 0, 0, numbered_tids(0, 1), query), EngineError);
    dense.shape.element = ElementType::list;
    EXPECT_THROW(begin_build(client_, dense), EngineError);
    dense.shape.method = Method::exact;
    EXPECT_THROW(begin_build(client_, dense), EngineError);
    TestIndex lists = index_;
    lists.shape.element = ElementType::float32;
    lists.shape.metric = static_cast<std::uint8_t>(Metric::l2);
    EXPECT_THROW(begin_build(client_, lists), EngineError);
}

// Blocks with random changes: a decoder throws, or the accepted rows can be read from end to end.
TEST(HostileBlocks, LetPassCanBeRead)
{
    std::mt19937_64 random(5);
    std::size_t taken = 0;
    std::size_t dropped = 0;
    constexpr std::uint64_t awkward[] = {0, 1, 2, 5, 6, 0x7fffffff, 0xffffffff, 1ULL << 32, ~0ULL, ~0ULL - 7};
    for (int round = 0; round < 200000; ++round) {
        SearchRequest request{};
        request.k = 1;
        request.query_count = 3;
        request.form = {5, 0, RowLayout::weighted_lists, 0};
        std::vector<std::byte> payload(sizeof(request));
        std::memcpy(payload.data(), &request, sizeof(request));
        const std::vector<std::byte> block = Block().bytes();
        payload.insert(payload.end(), block.begin(), block.end());
        for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
            const std::uint64_t value = random() % 3 == 0 ? random() : awkward[random() % std::size(awkward)];
            const bool in_form = random() % 3 == 0;
            const std::size_t from = in_form ? offsetof(SearchRequest, form) : sizeof(request);
            const std::size_t width = random() % 2 == 0 ? 8 : 4;
            const std::size_t room = in_form ? sizeof(RowForm) : payload.size() - from;
            std::memcpy(payload.data() + from + random() % (room / width) * width, &value, width);
        }
        try {
            const SearchMessage message = decode_search(payload);
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < message.queries.count && message.queries.offsets != nullptr; ++i) {
                for (const std::uint32_t word : message.queries.list(i)) sum += word;
            }
            for (const float value : message.queries.dense()) sum += value > 0;
            IndexShape shape = list_shape(message.queries.weights != nullptr);
            if (message.queries.offsets != nullptr && lists_fault(message.queries, shape) == nullptr) ++taken;
            EXPECT_GE(sum + 1, 1U);
        } catch (const Malformed&) {
            ++dropped;
        }
    }
    EXPECT_GT(taken, 10000U);
    EXPECT_GT(dropped, 10000U);
}

}  // namespace
}  // namespace pgwarp::test
