// Searches among the rows of a bitmap through a live server: bitmaps in pieces, of one connection, unknown ones.
#include <gtest/gtest.h>

#include <set>

#include "engine_fixture.h"
#include "tid_bitmap_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

class SentTids : public testing::Test
{
protected:
    SentTids() { load(client, index, build(client, index)); }

    static void send_tids(EngineClient& to, std::uint64_t number, const std::vector<std::uint64_t>& words,
                          std::size_t piece = 100)
    {
        std::size_t first = 0;
        do {
            const std::size_t count = std::min(piece, words.size() - first);
            const std::vector<std::uint64_t> some(words.begin() + static_cast<std::ptrdiff_t>(first),
                                                  words.begin() + static_cast<std::ptrdiff_t>(first + count));
            const LoadTidsRequest request = {number, first, static_cast<std::uint32_t>(count),
                                             first + count == words.size() ? 1U : 0U};
            to.call(MessageType::load_tids, EngineClient::bytes_of(request), EngineClient::bytes_of_all(some));
            first += count;
        } while (first < words.size());
    }
    SearchOutcome search_among(EngineClient& from, std::uint64_t number, std::uint32_t k)
    {
        SearchRequest request = search_request(index, k);
        request.tids = number;
        return search(from, request, query);
    }
    // Every third row.
    std::set<Tid> some_tids() const
    {
        std::set<Tid> tids;
        for (std::size_t row = 0; row < index.rows(); row += 3) tids.insert(index.tids[row]);
        return tids;
    }

    TestServer server;
    EngineClient client{server.path()};
    const TestIndex index = TestIndex::random(900, 6, Metric::l2);
    const std::vector<float> query = index.random_rows(1, 2);
};

TEST_F(SentTids, NarrowTheSearchesOfTheirConnection)
{
    EngineClient other(server.path());
    EXPECT_EQ(search_among(client, 5, 10).reply.status, SearchStatus::need_tids);
    send_tids(client, 5, bitmap_words(some_tids(), {}));
    const SearchOutcome outcome = search_among(client, 5, 10);
    ASSERT_EQ(outcome.reply.status, SearchStatus::answered);
    std::vector<bool> others(index.rows(), true);
    for (std::size_t row = 0; row < index.rows(); row += 3) others[row] = false;
    const auto truth = brute_force(index, query.data(), 10, others);
    ASSERT_EQ(outcome.results.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i)
        EXPECT_EQ(outcome.results[i].tid, index.tids[truth[i].second]) << "result " << i;
    EXPECT_EQ(outcome.reply.passing_rows, 300U);
    EXPECT_NE(outcome.reply.filter_ways, FilterWays::none);
    EXPECT_EQ(search_among(other, 5, 10).reply.status, SearchStatus::need_tids);
    EXPECT_EQ(search_among(client, 6, 10).reply.status, SearchStatus::need_tids);
    // Searches of all rows are others.
    const SearchOutcome all = search(client, search_request(index, 10), query);
    EXPECT_EQ(all.reply.filter_ways, FilterWays::none);
    expect_nearest(index, query.data(), all.results, 10);
}

TEST_F(SentTids, AreReplacedByNewOnesOfTheirNumber)
{
    send_tids(client, 5, bitmap_words(some_tids(), {}));
    send_tids(client, 5, bitmap_words({index.tids[7]}, {}));
    const SearchOutcome outcome = search_among(client, 5, 10);
    ASSERT_EQ(outcome.results.size(), 1U);
    EXPECT_EQ(outcome.results[0].tid, index.tids[7]);
    send_tids(client, 6, {});
    EXPECT_TRUE(search_among(client, 6, 10).results.empty());
}

TEST_F(SentTids, WithFaultsAreRefused)
{
    EXPECT_THROW(send_tids(client, 5, {4, 3}), EngineError);
    EXPECT_EQ(search_among(client, 5, 10).reply.status, SearchStatus::need_tids);
    // Such requests are malformed: they end the connection.
    const auto expect_end = [&](const LoadTidsRequest& request, std::size_t words) {
        EngineClient other(server.path());
        EXPECT_THROW(other.call(MessageType::load_tids, EngineClient::bytes_of(request),
                                EngineClient::bytes_of_all(std::vector<std::uint64_t>(words))),
                     ConnectionLost);
    };
    expect_end({no_tids, 0, 1, 1}, 1);
    expect_end({5, 0, 2, 1}, 1);
    expect_end({5, 0, 1, 2}, 1);
    expect_end({5, max_tid_bitmap_words, 1, 1}, 1);
    expect_end({5, ~std::uint64_t{0}, 1, 1}, 1);
}

}  // namespace
}  // namespace pgwarp
