// Searches of many indexes in one request.
#include <gtest/gtest.h>

#include "engine_fixture.h"

namespace pgwarp::spread_test
{
namespace
{

constexpr std::uint32_t dimensions = 4;
constexpr std::uint32_t k = 3;

struct SpreadOutcome {
    SearchIndexesReply head;
    std::vector<IndexAnswer> answers;
    std::vector<std::uint32_t> counts;
    std::vector<Result> results;
    std::vector<std::uint64_t> places;  // of the indexes whose places were requested
};

class EngineSpread : public testing::Test
{
protected:
    EngineSpread() : client_(server_.path())
    {
        for (std::uint32_t i = 0; i < 40; ++i) {
            indexes_.push_back(TestIndex::random(20 + i, dimensions, Metric::l2, Method::graph, i));
            indexes_.back().key.relation = 100 + i;
            load(client_, indexes_.back(), build(client_, indexes_.back()));
        }
    }
    ~EngineSpread() override { test_method_state().cost = 1.0; }

    IndexTarget target(std::size_t i) const
    {
        IndexTarget out{};
        out.key = indexes_[i].key;
        out.k = k;
        return out;
    }
    std::vector<IndexTarget> all_targets() const
    {
        std::vector<IndexTarget> targets;
        for (std::size_t i = 0; i < indexes_.size(); ++i) targets.push_back(target(i));
        return targets;
    }

    SpreadOutcome ask(const std::vector<IndexTarget>& targets, const std::vector<float>& queries,
                      const std::vector<std::uint64_t>& predicate = {})
    {
        SearchIndexesRequest request{};
        request.index_count = static_cast<std::uint32_t>(targets.size());
        request.query_count = static_cast<std::uint32_t>(queries.size() / dimensions);
        request.dimensions = dimensions;
        request.predicates = {predicate.empty() ? 0U : 1U, static_cast<std::uint32_t>(predicate.size())};
        const auto rows = EngineClient::bytes_of_all(queries);
        const auto words = EngineClient::bytes_of_all(predicate);
        std::vector<std::byte> last(rows.begin(), rows.end());
        last.insert(last.end(), words.begin(), words.end());
        const ClientReply reply = client_.call(MessageType::search_indexes, EngineClient::bytes_of(request),
                                               EngineClient::bytes_of_all(targets), last);
        SpreadOutcome out{reply.as<SearchIndexesReply>(), {}, {}, {}, {}};
        std::size_t at = sizeof(SearchIndexesReply);
        out.answers = reply.array_at<IndexAnswer>(at, targets.size());
        at += targets.size() * sizeof(IndexAnswer);
        const std::size_t counts = targets.size() * request.query_count;
        out.counts = reply.array_at<std::uint32_t>(at, counts);
        at += (counts * sizeof(std::uint32_t) + 7) / 8 * 8;
        std::size_t results = 0;
        std::size_t places = 0;
        for (std::size_t i = 0; i < counts; ++i) {
            results += out.counts[i];
            if (targets[i / request.query_count].want_places != 0) places += out.counts[i];
        }
        out.results = reply.array_at<Result>(at, results);
        at += results * sizeof(Result);
        out.places = reply.array_at<std::uint64_t>(at, places);
        EXPECT_EQ(reply.payload.size(), at + places * sizeof(std::uint64_t));
        return out;
    }

    void expect_right(const SpreadOutcome& outcome, const std::vector<float>& queries)
    {
        const std::size_t count = queries.size() / dimensions;
        std::size_t at = 0;
        for (std::size_t i = 0; i < outcome.answers.size(); ++i) {
            EXPECT_EQ(outcome.answers[i].status, SearchStatus::answered);
            for (std::size_t q = 0; q < count; ++q) {
                const auto truth = brute_force(indexes_[i], queries.data() + q * dimensions, k);
                ASSERT_EQ(outcome.counts[i * count + q], k);
                for (std::size_t j = 0; j < k; ++j, ++at) {
                    EXPECT_EQ(outcome.results[at].distance, truth[j].first);
                    EXPECT_EQ(outcome.results[at].tid, indexes_[i].tids[truth[j].second]);
                }
            }
        }
    }

    TestServer server_;
    EngineClient client_;
    std::vector<TestIndex> indexes_;
};

TEST_F(EngineSpread, AnswersAreThoseOfTheIndexes)
{
    const auto queries = indexes_[0].random_rows(5, 77);
    // Answered by the I/O thread, by the pool with an index a thread, and by the pool one index after the other.
    for (double cost : {1.0, 1e5, 1e9}) {
        test_method_state().cost = cost;
        expect_right(ask(all_targets(), queries), queries);
        const std::vector<float> one(queries.begin(), queries.begin() + dimensions);
        const SpreadOutcome outcome = ask(all_targets(), one);
        expect_right(outcome, one);
        EXPECT_EQ(outcome.answers[7].last.distance, outcome.results[7 * k + k - 1].distance);
    }
}

TEST_F(EngineSpread, WhatIsNotThereIsSaidOfEachIndex)
{
    std::vector<IndexTarget> targets = {target(0), target(1), target(2), target(3)};
    targets[1].key.relation = 9999;
    targets[2].delta_end[1] = 1;
    targets[3].tombstone_version = 1;
    const SpreadOutcome outcome = ask(targets, std::vector<float>(dimensions));
    EXPECT_EQ(outcome.answers[0].status, SearchStatus::answered);
    EXPECT_EQ(outcome.answers[1].status, SearchStatus::need_load);
    EXPECT_EQ(outcome.answers[2].status, SearchStatus::need_delta);
    EXPECT_EQ(outcome.answers[3].status, SearchStatus::need_tombstones);
    EXPECT_EQ(outcome.counts, (std::vector<std::uint32_t>{k, 0, 0, 0}));
    EXPECT_EQ(outcome.results.size(), k);
}

// A predicate of a column that an index lacks is no fault of the other indexes.
TEST_F(EngineSpread, IndexesWithoutAColumnAreLeftToTheirOwnSearches)
{
    const std::vector<float> row(dimensions);
    const std::vector<std::uint64_t> first_column = {1, 0 | std::uint64_t{1} << 32, 5, 5};
    const SpreadOutcome outcome = ask({target(0), target(1)}, row, first_column);
    EXPECT_EQ(outcome.answers[0].status, SearchStatus::alone);
    EXPECT_EQ(outcome.answers[1].status, SearchStatus::alone);
    EXPECT_EQ(outcome.counts, (std::vector<std::uint32_t>{0, 0}));
    expect_right(ask(all_targets(), row, {0}), row);
}

TEST_F(EngineSpread, DeltaRowsAreSearched)
{
    const std::vector<float> row = {9, 9, 9, 9};
    send_delta(client_, indexes_[5], 0, 0, {Tid{500, 1, 0}}, row);
    const SpreadOutcome outcome = ask(all_targets(), row);
    EXPECT_EQ(outcome.results[5 * k].tid, (Tid{500, 1, 0}));
    EXPECT_EQ(outcome.results[5 * k].distance, 0);
}

TEST_F(EngineSpread, TellsPlacesOfTheIndexesThatWantThem)
{
    const auto queries = indexes_[0].random_rows(3, 78);
    std::vector<IndexTarget> targets = all_targets();
    for (std::size_t i = 0; i < targets.size(); i += 3) targets[i].want_places = 1;
    for (double cost : {1.0, 1e5, 1e9}) {
        test_method_state().cost = cost;
        const SpreadOutcome outcome = ask(targets, queries);
        expect_right(outcome, queries);
        ASSERT_EQ(outcome.places.size(), 14U * 3 * k);
        std::size_t at = 0;
        for (std::size_t i = 0; i < targets.size(); i += 3) {
            for (std::size_t q = 0; q < 3; ++q) {
                const auto truth = brute_force(indexes_[i], queries.data() + q * dimensions, k);
                for (std::size_t j = 0; j < k; ++j) EXPECT_EQ(outcome.places[at++], truth[j].second);
            }
        }
    }
    targets[1].key.relation = 9999;
    targets[3].key.relation = 9999;
    EXPECT_EQ(ask(targets, queries).places.size(), 13U * 3 * k);
    targets[0].want_places = 2;
    EXPECT_THROW(ask(targets, queries), std::runtime_error);
}

TEST_F(EngineSpread, EachIndexCountsItsSearches)
{
    ask(all_targets(), std::vector<float>(2 * dimensions));
    const ClientReply reply = client_.call(MessageType::status);
    for (const MirrorStatus& mirror : reply.array_at<MirrorStatus>(sizeof(StatusReply), indexes_.size())) {
        EXPECT_EQ(mirror.searches, 2U);
        EXPECT_EQ(mirror.batches, 1U);
        EXPECT_EQ(mirror.widest_batch, 2U);
        EXPECT_GT(mirror.answer_ns, 0U);
    }
}

TEST_F(EngineSpread, NonsenseIsRefused)
{
    const std::vector<float> query(dimensions);
    std::vector<IndexTarget> targets = {target(0)};
    targets[0].k = 0;
    EXPECT_THROW(ask(targets, query), EngineError);
    targets.assign(70, target(0));
    for (IndexTarget& each : targets) each.k = max_k;
    EXPECT_THROW(ask(targets, query), EngineError);
    EXPECT_THROW(ask({target(0)}, {0, 0, 0, std::numeric_limits<float>::quiet_NaN()}), EngineError);
    expect_right(ask(all_targets(), query), query);
}

}  // namespace
}  // namespace pgwarp::spread_test
