// Delta rows in parts: searches answer as if all rows were compared, or as an index built of them would.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "delta_fixture.h"
#include "engine/mirror/delta_part.h"
#include "engine/search/delta_search.h"
#include "engine/server/error.h"
#include "engine_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

class ExactParts : public testing::TestWithParam<Metric>
{
};

TEST_P(ExactParts, AnswerAsComparingEveryRowDoes)
{
    Fresh fresh(Method::exact, GetParam(), 1500, 1300);
    const auto plain = fresh.load();
    fresh.append(*plain, fresh.indexed(), fresh.rows());
    fresh.append_in_parts(*fresh.mirror, 16, 1);
    ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 2U);
    EXPECT_GT(fresh.mirror->snapshot()->plain_rows(), 0U);
    EXPECT_EQ(fresh.mirror->snapshot()->delta_rows(), 1300U);
    const std::vector<float> queries = fresh.queries(20);
    for (const std::uint32_t k : {1U, 10U, 500U}) {
        expect_same(fresh.search(fresh.mirror, queries, k), fresh.search(plain, queries, k));
        EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, k), queries, k), 1);
    }
    const std::set<std::size_t> dead = every(3, fresh.rows());
    fresh.kill(*plain, dead, 1);
    fresh.kill(*fresh.mirror, dead, 1);
    expect_same(fresh.search(fresh.mirror, queries, 10), fresh.search(plain, queries, 10));
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10, dead), 1);
    // Parts of dead rows alone.
    fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
    EXPECT_EQ(fresh.mirror->snapshot()->plain_rows(), 0U);
    expect_same(fresh.search(fresh.mirror, queries, 40), fresh.search(plain, queries, 40));
}

INSTANTIATE_TEST_SUITE_P(Metrics, ExactParts,
                         testing::Values(Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1, Metric::hamming,
                                         Metric::jaccard));

// A method whose index searches delta rows in parts of its own.
struct Kind {
    Method method;
    Metric metric;
    ParameterList options;
    std::int64_t effort;  // that misses rows
    std::size_t indexed;  // before the delta of 2,000 rows or more
};

Kind ivfadc(Metric metric, std::int64_t codes, std::int64_t refine)
{
    return {Method::ivfadc, metric, make_list({{"lists", 48}, {"codes", codes}, {"refine", refine}}), 6, 4000};
}
Kind graph(Metric metric, std::int64_t vectors)
{
    return {Method::graph, metric, make_list({{"vectors", vectors}}), 40, 3000};
}
const std::vector<Kind> ivfadc_kinds{ivfadc(Metric::l2, 0, 1),     ivfadc(Metric::l2, 0, 0),
                                     ivfadc(Metric::l2, 1, 1),     ivfadc(Metric::l2, 2, 0),
                                     ivfadc(Metric::l2, 0, 2),     ivfadc(Metric::cosine, 0, 1),
                                     ivfadc(Metric::cosine, 2, 2), ivfadc(Metric::inner_product, 0, 1)};
const std::vector<Kind> graph_kinds{graph(Metric::l2, 0), graph(Metric::cosine, 0),  graph(Metric::inner_product, 0),
                                    graph(Metric::l1, 1), graph(Metric::hamming, 0), graph(Metric::jaccard, 0)};

class OwnParts : public testing::TestWithParam<Kind>
{
};

TEST_P(OwnParts, FindAsMuchAsAnIndexOfAllRows)
{
    const auto& [method, metric, options, effort, indexed] = GetParam();
    const std::size_t added = indexed - 1000;
    Fresh fresh(method, metric, indexed, added, options);
    fresh.append_in_parts(*fresh.mirror, 16, 1);
    ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 2U);
    const std::vector<float> queries = fresh.queries(200);
    Fresh built(method, metric, indexed + added, 0, options);
    const double fresh_recall = fresh.recall(fresh.search(fresh.mirror, queries, 10, effort), queries, 10);
    const double built_recall = built.recall(built.search(built.mirror, queries, 10, effort), queries, 10);
    EXPECT_GE(fresh_recall, built_recall - 0.01);

    const std::set<std::size_t> dead = every(2, fresh.rows());
    fresh.kill(*fresh.mirror, dead, 1);
    built.kill(*built.mirror, dead, 1);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10, effort), queries, 10, dead),
              built.recall(built.search(built.mirror, queries, 10, effort), queries, 10, dead) - 0.01);
}

TEST_P(OwnParts, RunOutOfNoRows)
{
    Fresh fresh(GetParam().method, GetParam().metric, 300, 400, GetParam().options);
    fresh.append_in_parts(*fresh.mirror, 2);
    const std::vector<float> queries = fresh.queries(3);
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 700, 1);
    EXPECT_EQ(fresh.recall(answer, queries, 700), 1) << "also those in lists that are not probed";
    // Few rows of the index live: its own search goes through all lists, and so does that of the parts.
    const std::set<std::size_t> all = every(1, 300);
    fresh.kill(*fresh.mirror, all, 1);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 400, 1), queries, 400, all), 1);
}

INSTANTIATE_TEST_SUITE_P(Ivfadc, OwnParts, testing::ValuesIn(ivfadc_kinds));
INSTANTIATE_TEST_SUITE_P(Graph, OwnParts, testing::ValuesIn(graph_kinds));

class IvfadcParts : public testing::TestWithParam<Kind>
{
};

TEST_P(IvfadcParts, RankByTheVectorsThemselves)
{
    Fresh fresh(Method::ivfadc, GetParam().metric, 1000, 2000, GetParam().options);
    fresh.append_in_parts(*fresh.mirror, 3);
    const std::vector<float> queries = fresh.queries(50);
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 10, GetParam().effort);
    const auto plain = fresh.load();
    fresh.append(*plain, fresh.indexed(), fresh.rows());
    const SearchAnswer compared = fresh.search(plain, queries, 10, GetParam().effort);
    std::size_t same = 0;
    std::size_t of_delta = 0;
    for (std::size_t i = 0; i < answer.results.size(); ++i) {
        same += answer.results[i].tid == compared.results[i].tid ? 1 : 0;
        if (answer.places[i] < delta_ordinal(0, 0)) continue;
        ++of_delta;
        const float* row = fresh.row_at(row_of(answer.results[i].tid));
        const double distance =
            canonical_distance(GetParam().metric, queries.data() + i / 10 * dimensions, row, dimensions);
        EXPECT_NEAR(answer.results[i].distance, distance, answer.bound_width);
        EXPECT_LE(answer.results[i].distance, distance);
    }
    EXPECT_GT(of_delta, answer.results.size() / 3);
    EXPECT_GT(same, answer.results.size() * 8 / 10);
}

// Rows that differ by less than the precision of a part's bytes.
TEST_P(IvfadcParts, RankAsManyAsAreAskedFor)
{
    constexpr std::size_t crowd = 400;
    Fresh fresh(Method::ivfadc, GetParam().metric, 1000, crowd, GetParam().options);
    std::vector<float> query(fresh.row_at(1000), fresh.row_at(1000) + dimensions);
    fresh.gather(1000, 1e-4F);
    fresh.append_in_parts(*fresh.mirror, 1);
    const ParameterList settings = make_list({{"probes", 48}, {"refine_factor", 100}});
    const auto plain = fresh.load();
    fresh.append(*plain, fresh.indexed(), fresh.rows());
    const SearchAnswer answer = fresh.search(fresh.mirror, query, 10, 0, SearchMode::normal, {}, settings);
    expect_same(answer, fresh.search(plain, query, 10, 0, SearchMode::normal, {}, settings));
}

INSTANTIATE_TEST_SUITE_P(Kinds, IvfadcParts, testing::ValuesIn(ivfadc_kinds));

// An index of bits: the answer holds enough rows of parts for a caller that ranks it by the rows.
TEST(DeltaParts, AreThereBesideBits)
{
    Fresh fresh(Method::graph, Metric::l2, 2000, 1000, make_list({{"vectors", 2}, {"bits", 256}}));
    fresh.append_in_parts(*fresh.mirror, 2);
    ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 1U);
    const std::vector<float> queries = fresh.queries(100);
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 64, 64);
    std::size_t missed = 0;
    std::size_t wanted = 0;
    for (std::size_t q = 0; q < 100; ++q) {
        std::set<std::size_t> found;
        for (std::size_t i = 0; i < 64; ++i) found.insert(row_of(answer.results[q * 64 + i].tid));
        for (const std::size_t row : fresh.truth(queries.data() + q * dimensions, 10)) {
            if (row < fresh.indexed()) continue;
            ++wanted;
            missed += found.contains(row) ? 0 : 1;
        }
    }
    EXPECT_GT(wanted, 100U);
    EXPECT_LE(missed, wanted / 50);
}

// Signatures find some rows of the index; of the delta nothing is missed, as its parts are exact.
TEST(DeltaParts, BesideSignaturesAreExact)
{
    for (const Metric metric : {Metric::l2, Metric::l1, Metric::cosine}) {
        Fresh fresh(Method::matchcount, metric, 2000, 1500, make_list({{"hashes", 16}}));
        fresh.append_in_parts(*fresh.mirror, 3, 1);
        ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 1U);
        const std::vector<float> queries = fresh.queries(50);
        EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10, 2000), queries, 10), 1);
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 10, 10);
        for (std::size_t q = 0; q < 50; ++q) {
            std::set<std::size_t> found;
            for (std::size_t i = 0; i < 10; ++i) found.insert(row_of(answer.results[q * 10 + i].tid));
            for (const std::size_t row : fresh.truth(queries.data() + q * dimensions, 10))
                EXPECT_TRUE(row < fresh.indexed() || found.contains(row)) << "query " << q << ", row " << row;
        }
        const std::set<std::size_t> dead = every(2, fresh.rows());
        fresh.kill(*fresh.mirror, dead, 1);
        EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10, 2000), queries, 10, dead), 1);
    }
}

// Lower bounds of half vectors lie below distances: beside exact distances they would displace nearer delta rows.
TEST(DeltaRows, ComeInTimeBesideLowerBounds)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 4000, 3000, make_list({{"lists", 48}}));
    fresh.append(*fresh.mirror, fresh.indexed(), fresh.rows());
    const std::vector<float> queries = fresh.queries(200);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 0.999);
}

// Numbers of differing bits are larger than cosine distances and smaller than distances of L1: the answer holds rows of
// both kinds for a caller that ranks it by the rows.
TEST(DeltaRows, AreThereBesideValuesThatAreNoDistances)
{
    for (const Metric metric : {Metric::cosine, Metric::l1}) {
        Fresh fresh(Method::graph, metric, 4000, 300, make_list({{"vectors", 2}, {"bits", 256}}));
        fresh.append(*fresh.mirror, fresh.indexed(), fresh.rows());
        const std::vector<float> queries = fresh.queries(100);
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 64, 64);
        ASSERT_EQ(answer.results.size(), 64U * 100);
        std::size_t fresh_missed = 0;
        std::size_t missed = 0;
        for (std::size_t q = 0; q < 100; ++q) {
            std::set<std::size_t> found;
            for (std::size_t i = 0; i < 64; ++i) found.insert(row_of(answer.results[q * 64 + i].tid));
            for (const std::size_t row : fresh.truth(queries.data() + q * dimensions, 10)) {
                if (!found.contains(row)) ++(row < fresh.indexed() ? missed : fresh_missed);
            }
        }
        EXPECT_EQ(fresh_missed, 0U);
        EXPECT_LT(missed, 400U);
    }
}

TEST(DeltaParts, AreExactOnADeviceWhereItsExactMethodTakesTheRows)
{
    MethodFactory of_device = *find_method(Method::matchcount);
    of_device.exact_parts = find_method(Method::exact);
    for (const Comparison& comparison : find_description(Method::matchcount)->comparisons) {
        IndexShape shape = {};
        shape.method = Method::matchcount;
        shape.element = comparison.element;
        shape.metric = static_cast<std::uint8_t>(comparison.metric);
        shape.dimensions = is_list(shape.element) ? 0 : 8;
        const PartRecipe recipe(shape, {}, 100, {}, of_device);
        EXPECT_EQ(recipe.exact_on_device, !is_list(shape.element)) << static_cast<int>(shape.element);
        EXPECT_EQ(recipe.method->method, is_list(shape.element) ? Method::matchcount : Method::exact);
    }
}

TEST(DeltaParts, KeepTheListsThatRowsHave)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 2000, 1500, make_list({{"lists", 40}}));
    fresh.append_in_parts(*fresh.mirror, 24);
    // Enough rows that all parts go into one.
    const auto before = fresh.mirror->snapshot();
    ASSERT_GE(before->parts.size(), 2U);
    const auto whole = fresh.load();
    fresh.append_in_parts(*whole, 1);
    ASSERT_EQ(whole->snapshot()->parts.size(), 1U);
    std::map<std::uint64_t, std::uint32_t> list_of;
    const DeltaPart& one = *whole->snapshot()->parts.front().part;
    for (std::size_t i = 0; i < one.rows.size(); ++i) list_of[one.rows[i].ordinal] = one.lists[i];
    std::size_t compared = 0;
    for (const PartView& view : before->parts) {
        ASSERT_EQ(view.part->lists.size(), view.part->rows.size());
        for (std::size_t i = 0; i < view.part->rows.size(); ++i, ++compared) {
            EXPECT_EQ(view.part->lists[i], list_of.at(view.part->rows[i].ordinal));
        }
    }
    EXPECT_EQ(compared, 1500U);
}

TEST(DeltaParts, AreFewHoweverManyTheRows)
{
    Fresh fresh(Method::exact, Metric::l2, 10, 4000);
    std::size_t most = 0;
    for (std::size_t row = 10; row < fresh.rows(); row += 50) {
        fresh.append(*fresh.mirror, row, std::min(row + 50, fresh.rows()));
        fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
        most = std::max(most, fresh.mirror->snapshot()->parts.size());
    }
    EXPECT_LE(most, 4U);
    EXPECT_EQ(fresh.mirror->snapshot()->plain_rows(), 0U);
}

TEST(DeltaParts, ServeAnIndexBuiltWithoutRows)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 0, 900);
    fresh.append_in_parts(*fresh.mirror, 3);
    const std::vector<float> queries = fresh.queries(10);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 1);
}

TEST(DeltaParts, AContinuationOffersEveryRowOnce)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 500, 400, make_list({{"lists", 20}}));
    fresh.append_in_parts(*fresh.mirror, 3, 1);
    const std::vector<float> queries = fresh.queries(1);
    SearchCursor after{-HUGE_VAL, 0};
    std::set<std::size_t> seen;
    while (true) {
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 64, 2, SearchMode::continuation, after);
        if (answer.results.empty()) break;
        for (const Result& result : answer.results) EXPECT_TRUE(seen.insert(row_of(result.tid)).second);
        after = cursor_behind(answer.results, answer.places, after);
    }
    EXPECT_EQ(seen.size(), 900U);
}

TEST(DeltaParts, AFailureChangesNothing)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    fresh.mirror->count_delta(1, 0, 100000000);
    ASSERT_TRUE(fresh.mirror->wants_part());
    EXPECT_FALSE(fresh.mirror->wants_part()) << "it is being made";
    EXPECT_THROW(fresh.mirror->add_part(fresh.pool, [](std::uint64_t) { throw OutOfMemory("none"); }), OutOfMemory);
    EXPECT_TRUE(fresh.mirror->snapshot()->parts.empty());
    EXPECT_FALSE(fresh.mirror->wants_part()) << "not at once again";
    const std::vector<float> queries = fresh.queries(5);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 1);
}

TEST(DeltaParts, AreMadeWhereTheyPay)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    EXPECT_FALSE(fresh.mirror->wants_part()) << "nothing was measured";
    fresh.mirror->count_delta(10000000, 0, 2000000);
    EXPECT_FALSE(fresh.mirror->wants_part()) << "a fifth of the search";
    fresh.mirror->count_delta(0, 0, 1000000);
    EXPECT_TRUE(fresh.mirror->wants_part());
}

TEST(DeltaParts, TellWhatFreshRowsCost)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    EXPECT_LT(fresh.mirror->delta_cost(), 0) << "nothing was measured";
    fresh.mirror->count_delta(10000000, 1000000, 500000);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.15, 1e-6);
    fresh.mirror->count_delta(0, 0, 5000000);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.225, 1e-6) << "a part will spare the rest";
    EXPECT_THROW(fresh.mirror->add_part(fresh.pool, [](std::uint64_t) { throw OutOfMemory("none"); }), OutOfMemory);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.65, 1e-6) << "it will not";
    fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
    EXPECT_LT(fresh.mirror->delta_cost(), 0) << "measured anew";
    EXPECT_EQ(fresh.mirror->status().part_rows, 400U);
    // Old measurements have little weight.
    for (int i = 0; i < 100; ++i) fresh.mirror->count_delta(1000000, 500000, 0);
    for (int i = 0; i < 100; ++i) fresh.mirror->count_delta(1000000, 100000, 0);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.1, 0.01);
    fresh.mirror->count_delta(100000, 50000000, 0);
    EXPECT_NEAR(fresh.mirror->delta_cost(), 0.1, 0.05) << "a thread that waited for its processor";
}

TEST(DeltaParts, AreMadeSoonAlsoAfterLongWithoutFreshRows)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    for (int i = 0; i < 1000; ++i) fresh.mirror->count_delta(1000000000, 0, 100000);
    EXPECT_FALSE(fresh.mirror->wants_part());
    int searches = 0;
    while (!fresh.mirror->wants_part() && searches < 1000) {
        fresh.mirror->count_delta(100000, 0, 100000);
        ++searches;
    }
    EXPECT_LT(searches, 200);
}

TEST(DeltaParts, BearWritersAndReaders)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 1000, 1200, make_list({{"lists", 30}}));
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (std::size_t row = 1000; row < fresh.rows(); row += 10) fresh.append(*fresh.mirror, row, row + 10);
        done = true;
    });
    std::thread indexer([&] {
        ThreadPool own(1);
        while (!done) fresh.mirror->add_part(own, [](std::uint64_t) {});
    });
    std::thread killer([&] {
        for (std::uint64_t version = 1; !done; ++version) fresh.kill(*fresh.mirror, {7, 77}, version);
    });
    const std::vector<float> queries = fresh.queries(8);
    while (!done) {
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 10, 4);
        EXPECT_EQ(answer.results.size(), 80U);
        EXPECT_LE(answer.snapshot->plain_rows(), answer.snapshot->delta_rows());
    }
    writer.join();
    indexer.join();
    killer.join();
    EXPECT_EQ(fresh.mirror->snapshot()->delta_rows(), 1200U);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10, {7, 77}), 0.99);
}

TEST(DeltaParts, AnEngineMakesThemInTheBackground)
{
    TestServer server;
    const TestIndex index = TestIndex::random(200, 16, Metric::l2, Method::exact);
    EngineClient client(server.path());
    load(client, index, build(client, index));
    TestIndex all = index;
    const std::vector<float> more = index.random_rows(4000, 9);
    std::vector<Tid> tids;
    for (std::size_t i = 0; i < 4000; ++i) tids.push_back({static_cast<std::uint32_t>(5000 + i), 1, 0});
    send_delta(client, index, 1, 0, tids, more);
    all.vectors.insert(all.vectors.end(), more.begin(), more.end());
    all.tids.insert(all.tids.end(), tids.begin(), tids.end());
    SearchRequest request = search_request(index, 10);
    request.delta_end[1] = 4000;
    const auto mirror = server.engine().residency.find_resident(index.key);
    ASSERT_NE(mirror, nullptr);
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    for (std::uint32_t seed = 100; mirror->snapshot()->parts.empty() && Clock::now() < deadline; ++seed) {
        EXPECT_EQ(search(client, request, index.random_rows(1, seed)).results.size(), 10U);
    }
    ASSERT_FALSE(mirror->snapshot()->parts.empty());
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
        const std::vector<float> query = index.random_rows(1, seed);
        const SearchOutcome outcome = search(client, request, query);
        const auto wanted = pgwarp::brute_force(all, query.data(), 10);
        for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(outcome.results[i].tid, all.tids[wanted[i].second]);
    }
}

TEST(DeltaParts, ManyRowsAreInOneBeforeAPreparedGenerationIsPublished)
{
    TestServer server;
    TestIndex index = TestIndex::random(200, 16, Metric::l2, Method::exact);
    EngineClient client(server.path());
    for (const std::size_t fresh : {900U, 1500U, 16001U}) {
        index.key.generation++;
        const BuiltIndex built = build(client, index);
        const auto prepare = [&] {
            client.call(MessageType::load_prepare, EngineClient::bytes_of(MirrorRequest{index.key}));
        };
        ASSERT_EQ(begin_load(client, index, built, 0, LoadRole::ahead), LoadGrant::granted);
        send_arrays(client, index, built);
        prepare();
        for (std::size_t sent = 0; sent < fresh;) {
            const std::size_t count = std::min<std::size_t>(fresh - sent, 5000);
            send_delta(client, index, 0, sent, std::vector<Tid>(count, {5000, 1, 0}), index.random_rows(count, 9));
            sent += count;
        }
        prepare();
        end_load(client, index);
        const auto mirror = server.engine().residency.find_resident(index.key);
        ASSERT_NE(mirror, nullptr);
        EXPECT_EQ(mirror->snapshot()->delta_rows(), fresh);
        EXPECT_EQ(mirror->snapshot()->plain_rows(), fresh > few_delta_rows && fresh <= most_rows_ahead ? 0 : fresh);
    }
}

}  // namespace
}  // namespace pgwarp
