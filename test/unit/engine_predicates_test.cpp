// Searches with predicates through a live server: requests of one predicate, of each query's own, and wrong ones; the
// fields of the reply; batches that several clients share.
#include <gtest/gtest.h>

#include "engine_fixture.h"
#include "methods/arrays.h"
#include "predicate_fixture.h"

namespace pgwarp::predicates_test
{
namespace
{

using namespace test;

constexpr std::size_t rows = 300;
constexpr std::uint32_t dimensions = 5;  // so that queries need padding
constexpr std::uint32_t columns = 2;

class Predicates : public testing::Test
{
protected:
    Predicates()
    {
        index.shape.attribute_count = columns;
        built.reply.rows = rows;
        built.arrays = index.arrays();
        built.arrays.push_back(make_array_shape(array_attributes, ArrayType::u64, rows, columns));
        std::vector<std::uint32_t> blocks;
        std::vector<std::uint16_t> offsets;
        for (const Tid& tid : index.tids) {
            blocks.push_back(tid.block);
            offsets.push_back(tid.offset);
        }
        const auto add = [this](const auto& values) {
            const auto bytes = std::as_bytes(std::span(values));
            built.bytes.emplace_back(bytes.begin(), bytes.end());
        };
        add(blocks);
        add(offsets);
        add(index.vectors);
        add(attributes);
        load(client, index, built);
    }

    SearchOutcome ask(const SearchRequest& request, const std::vector<float>& queries,
                      const std::vector<std::uint64_t>& words, const std::vector<std::uint32_t>& names = {})
    {
        std::vector<std::uint64_t> block((queries.size() * sizeof(float) + 7) / 8);
        std::memcpy(block.data(), queries.data(), queries.size() * sizeof(float));
        block.insert(block.end(), words.begin(), words.end());
        const std::size_t names_at = block.size();
        block.resize(block.size() + (names.size() + 1) / 2);
        if (!names.empty()) std::memcpy(block.data() + names_at, names.data(), names.size() * sizeof(std::uint32_t));
        return decode_outcome(
            client.call(MessageType::search, EngineClient::bytes_of(request), EngineClient::bytes_of_all(block)));
    }
    SearchRequest request(std::uint32_t k, std::uint32_t count, std::uint32_t predicates, std::size_t words) const
    {
        SearchRequest made = search_request(index, k, count);
        made.predicates = {predicates, static_cast<std::uint32_t>(words)};
        return made;
    }
    // Returns the nearest rows that pass.
    std::vector<std::pair<double, std::size_t>> truth(const float* query, std::size_t k,
                                                      std::span<const std::uint64_t> predicate) const
    {
        std::vector<bool> failing(rows);
        for (std::size_t row = 0; row < rows; ++row)
            failing[row] = !passes(predicate, attributes.data() + row * columns);
        return brute_force(index, query, k, failing);
    }
    void expect_right(const SearchOutcome& outcome, std::size_t q, const float* query, std::size_t k,
                      std::span<const std::uint64_t> predicate) const
    {
        std::size_t at = 0;
        for (std::size_t i = 0; i < q; ++i) at += outcome.counts[i];
        const auto wanted = truth(query, k, predicate);
        ASSERT_EQ(outcome.counts[q], wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            EXPECT_EQ(outcome.results[at + i].tid, index.tids[wanted[i].second]);
            EXPECT_EQ(outcome.results[at + i].distance, wanted[i].first);
        }
    }

    TestServer server;
    EngineClient client{server.path()};
    TestIndex index = TestIndex::random(rows, dimensions, Metric::l2);
    const std::vector<std::uint64_t> attributes = random_attributes(rows, columns, 100, 4);
    BuiltIndex built;
};

TEST_F(Predicates, HoldForAllQueriesOrEachItsOwn)
{
    const std::vector<float> queries = index.random_rows(3, 8);
    const Predicate few = Predicate().where(0, 10, 14);
    const Predicate many = Predicate().where(0, 5, 99).where(1, {{0, 4}, {null_code, null_code}});
    const SearchOutcome of_all = ask(request(10, 3, 1, few.words().size()), queries, few.words());
    for (std::size_t q = 0; q < 3; ++q) expect_right(of_all, q, queries.data() + q * dimensions, 10, few);
    EXPECT_EQ(of_all.reply.passing_rows, truth(queries.data(), rows, few).size());
    EXPECT_NE(static_cast<int>(of_all.reply.filter_ways), 0);

    std::vector<std::uint64_t> both = few.words();
    both.insert(both.end(), many.words().begin(), many.words().end());
    const SearchOutcome own = ask(request(10, 3, 2, both.size()), queries, both, {1, 0, 1});
    expect_right(own, 0, queries.data(), 10, many);
    expect_right(own, 1, queries.data() + dimensions, 10, few);
    expect_right(own, 2, queries.data() + 2 * dimensions, 10, many);
    EXPECT_GT(own.reply.passing_rows, of_all.reply.passing_rows);

    const SearchOutcome none = search(client, search_request(index, 10, 3), queries);
    EXPECT_EQ(none.reply.passing_rows, 0U);
    EXPECT_EQ(none.reply.filter_ways, FilterWays::none);
}

TEST_F(Predicates, HoldInContinuations)
{
    const std::vector<float> query = index.random_rows(1, 9);
    const Predicate half = Predicate().where(0, 0, 49);
    const auto all = truth(query.data(), rows, half);
    SearchRequest asked = request(7, 1, 1, half.words().size());
    asked.mode = SearchMode::continuation;
    asked.after = {-std::numeric_limits<double>::infinity(), 0};
    std::size_t at = 0;
    for (SearchOutcome page = ask(asked, query, half.words()); !page.results.empty();
         page = ask(asked, query, half.words())) {
        for (const Result& result : page.results) EXPECT_EQ(result.tid, index.tids[all.at(at++).second]);
        asked.after = page.reply.last;
    }
    EXPECT_EQ(at, all.size());
}

TEST_F(Predicates, ForOtherColumnsAreRefused)
{
    const std::vector<float> query = index.random_rows(1, 9);
    const Predicate other = Predicate().where(2, 1, 1);
    try {
        ask(request(3, 1, 1, other.words().size()), query, other.words());
        FAIL() << "accepted";
    } catch (const EngineError& error) {
        EXPECT_EQ(error.code, ErrorCode::bad_request);
    }
    // The connection is as good as before.
    EXPECT_EQ(search(client, search_request(index, 3), query).results.size(), 3U);
}

TEST_F(Predicates, ThatAreMalformedDropTheConnection)
{
    const std::vector<float> queries = index.random_rows(2, 9);
    const std::vector<std::uint64_t> right = Predicate().where(0, 1, 5).words();
    std::vector<std::uint64_t> two = right;
    two.insert(two.end(), right.begin(), right.end());
    const auto dropped = [&](SearchRequest asked, const std::vector<std::uint64_t>& words,
                             const std::vector<std::uint32_t>& names = {}) {
        try {
            ask(asked, queries, words, names);
        } catch (const ConnectionLost&) {
            client = EngineClient(server.path());
            return true;
        }
        return false;
    };
    EXPECT_FALSE(dropped(request(3, 2, 1, right.size()), right));
    EXPECT_FALSE(dropped(request(3, 2, 2, two.size()), two, {0, 1}));
    EXPECT_TRUE(dropped(request(3, 2, 1, right.size() + 1), right));
    EXPECT_TRUE(dropped(request(3, 2, 1, 0), right));
    EXPECT_TRUE(dropped(request(3, 2, 0, right.size()), right));
    EXPECT_TRUE(dropped(request(3, 2, 2, right.size()), right, {0, 1}));
    EXPECT_TRUE(dropped(request(3, 2, 1, two.size()), two));
    EXPECT_TRUE(dropped(request(3, 2, 2, two.size()), two, {0, 2}));
    EXPECT_TRUE(dropped(request(3, 2, 2, two.size()), two));
    const std::vector<std::uint64_t> turned = Predicate().where(0, 5, 1).words();
    EXPECT_TRUE(dropped(request(3, 2, 1, turned.size()), turned));
    const std::vector<std::uint64_t> endless(max_predicate_words + 1);
    EXPECT_TRUE(dropped(request(3, 2, max_predicate_words + 1, endless.size()), endless, {0, 1}));
}

// Searches that arrive while their only I/O thread searches become one batch, whatever their predicates.
TEST_F(Predicates, OfSeveralClientsShareABatch)
{
    constexpr unsigned clients = 6;
    EngineOptions options;
    options.io_threads = 1;
    TestServer narrow(options);
    EngineClient first(narrow.path());
    load(first, index, built);
    std::vector<EngineClient> sessions;  // their greetings too are answered by that thread
    for (unsigned i = 0; i < clients; ++i) sessions.emplace_back(narrow.path());
    test_method_state().searches = 0;
    test_method_state().held = true;
    const std::vector<float> zero(index.shape.dimensions);
    const std::uint64_t id = first.send(MessageType::search, EngineClient::bytes_of(search_request(index, 10)),
                                        EngineClient::bytes_of_all(zero));
    std::atomic<unsigned> asking{0};
    std::atomic<bool> shared{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < clients; ++i) {
        threads.emplace_back([&, i] {
            EngineClient& own = sessions[i];
            const std::vector<float> query = index.random_rows(1, 20 + i);
            const Predicate predicate = Predicate().where(0, 0, 40 + 7 * (i % 3));
            std::vector<std::uint64_t> block(3);
            std::memcpy(block.data(), query.data(), query.size() * sizeof(float));
            block.insert(block.end(), predicate.words().begin(), predicate.words().end());
            const bool filtered = i < clients - 1;
            const SearchRequest asked =
                filtered ? request(10, 1, 1, predicate.words().size()) : search_request(index, 10);
            const auto bytes = EngineClient::bytes_of_all(block);
            ++asking;
            const SearchOutcome outcome = decode_outcome(
                own.call(MessageType::search, EngineClient::bytes_of(asked), filtered ? bytes : bytes.first(20)));
            if (outcome.reply.batch_width > 1) shared = true;
            if (filtered) {
                expect_right(outcome, 0, query.data(), 10, predicate);
            } else {
                expect_nearest(index, query.data(), outcome.results, 10);
                EXPECT_EQ(outcome.reply.filter_ways, FilterWays::none);
            }
        });
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((asking < clients || test_method_state().searches == 0) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    test_method_state().held = false;
    EXPECT_EQ(decode_outcome(first.wait(id)).results.size(), 10U);
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(shared);
}

}  // namespace
}  // namespace pgwarp::predicates_test
