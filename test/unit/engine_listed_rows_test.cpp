// Small parts of an inverted file: the delta rows of the probed lists are compared one by one. Against brute force.
#include "engine/mirror/listed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "delta_fixture.h"
#include "numeric/distance.h"

namespace pgwarp::listed_rows_test
{
namespace
{

using namespace test;

constexpr std::size_t lists = 50;
constexpr std::size_t rows = 180;

IndexShape shape_of(Metric metric)
{
    IndexShape shape{};
    shape.method = Method::ivfadc;
    shape.element = ElementType::float32;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = dimensions;
    return shape;
}

class ListedRows : public ::testing::TestWithParam<Metric>
{
public:
    ListedRows() : vectors(random_rows(rows, dimensions, 3)), queries(random_rows(9, dimensions, 4))
    {
        if (GetParam() == Metric::cosine) normalise_rows(vectors, dimensions);
        for (std::size_t i = 0; i < rows; ++i) {
            parts.push_back({vectors.data() + i * dimensions, i, tid_of(i)});
            list_of.push_back(static_cast<std::uint32_t>(i * i % (lists - 5)));  // the last ones are empty
        }
        searcher = make_listed_rows(shape_of(GetParam()), "probes", parts, list_of, lists);
        batch.queries = queries;
        batch.count = 9;
        batch.k = 7;
    }

    // The k nearest live rows in these lists, of a reference in double precision.
    std::set<std::uint32_t> nearest(std::size_t query, const std::set<std::uint32_t>& wanted,
                                    const std::set<std::uint32_t>& dead) const
    {
        std::vector<std::pair<double, std::uint32_t>> all;
        for (std::uint32_t i = 0; i < rows; ++i) {
            if (!wanted.contains(list_of[i]) || dead.contains(i)) continue;
            all.emplace_back(
                canonical_distance(GetParam(), queries.data() + query * dimensions, parts[i].vector, dimensions), i);
        }
        std::sort(all.begin(), all.end());
        std::set<std::uint32_t> first;
        for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), batch.k); ++i) first.insert(all[i].second);
        return first;
    }

    void expect_nearest(const std::vector<std::set<std::uint32_t>>& wanted, const std::set<std::uint32_t>& dead) const
    {
        ThreadPool pool(2);
        std::vector<std::vector<RowResult>> results(batch.count);
        searcher->search(batch, results, pool);
        for (std::size_t q = 0; q < batch.count; ++q) {
            std::set<std::uint32_t> found;
            for (const RowResult& row : results[q]) {
                EXPECT_TRUE(found.insert(row.row).second);
                EXPECT_TRUE(wanted[q].contains(list_of[row.row]));
                EXPECT_FALSE(dead.contains(row.row));
            }
            const std::set<std::uint32_t> truth = nearest(q, wanted[q], dead);
            EXPECT_TRUE(std::includes(found.begin(), found.end(), truth.begin(), truth.end())) << "query " << q;
            EXPECT_LE(found.size(), truth.size() + 1) << "no more than rounding asks for";
        }
    }

    std::vector<float> vectors;
    std::vector<float> queries;
    std::vector<DeltaEntry> parts;
    std::vector<std::uint32_t> list_of;
    std::unique_ptr<Searcher> searcher;
    SearchBatch batch;
};

TEST_P(ListedRows, AreTheNearestOfTheListsProbed)
{
    std::vector<std::vector<Candidate>> probed(batch.count);
    std::vector<std::set<std::uint32_t>> wanted(batch.count);
    for (std::size_t q = 0; q < batch.count; ++q) {
        for (std::uint32_t list = 0; list < lists; ++list) {
            if ((list + q) % 3 != 0) continue;
            probed[q].push_back({0, list});
            wanted[q].insert(list);
        }
    }
    batch.probed = &probed;
    expect_nearest(wanted, {});
    std::vector<std::uint64_t> bits((rows + 63) / 64);
    std::set<std::uint32_t> dead;
    for (std::uint32_t i = 0; i < rows; i += 2) {
        bits[i / 64] |= std::uint64_t{1} << (i % 64);
        dead.insert(i);
    }
    batch.dead = bits;
    expect_nearest(wanted, dead);
}

TEST_P(ListedRows, AreThoseOfAllListsWhereNoneWereProbed)
{
    std::set<std::uint32_t> all;
    for (std::uint32_t list = 0; list < lists; ++list) all.insert(list);
    expect_nearest(std::vector(batch.count, all), {});
    batch.k = 500;
    expect_nearest(std::vector(batch.count, all), {});
}

TEST_P(ListedRows, StayCandidatesWhenTheirScoresOverflow)
{
    std::fill_n(vectors.begin(), dimensions, 3e38F);
    queries.assign(9 * dimensions, -3e38F);
    batch.queries = queries;
    searcher = make_listed_rows(shape_of(GetParam()), "probes", parts, list_of, lists);
    ThreadPool pool(1);
    std::vector<std::vector<RowResult>> results(batch.count);
    batch.k = rows;
    searcher->search(batch, results, pool);
    for (const auto& found : results) EXPECT_EQ(found.size(), rows);
}

INSTANTIATE_TEST_SUITE_P(Metrics, ListedRows, ::testing::Values(Metric::l2, Metric::inner_product, Metric::cosine));

// Every row is there twice, so that many are equally far.
TEST(ListedRowsOfOneQuery, AreTheSameOnSeveralThreads)
{
    constexpr std::size_t many = 20000;
    const std::vector<float> vectors = random_rows(many / 2, dimensions, 5);
    const std::vector<float> query = random_rows(1, dimensions, 6);
    std::vector<DeltaEntry> parts;
    std::vector<std::uint32_t> list_of;
    for (std::size_t i = 0; i < many; ++i) {
        parts.push_back({vectors.data() + i / 2 * dimensions, i, tid_of(i)});
        list_of.push_back(static_cast<std::uint32_t>(i * i % lists));
    }
    const auto searcher = make_listed_rows(shape_of(Metric::l2), "probes", parts, list_of, lists);
    const std::vector<std::uint64_t> dead((many + 63) / 64, 0x1111111111111111U);
    CancelToken cancel;
    SearchBatch batch;
    batch.queries = query;
    batch.count = 1;
    batch.cancel = &cancel;
    batch.dead = dead;
    ThreadPool one(1);
    ThreadPool four(4);
    for (const std::uint32_t k : {1U, 50U, 30000U}) {
        batch.k = k;
        std::vector<std::vector<RowResult>> alone(1);
        std::vector<std::vector<RowResult>> together(1);
        searcher->search(batch, alone, one);
        searcher->search(batch, together, four);
        EXPECT_GE(alone[0].size(), std::min<std::size_t>(k, many * 3 / 4));
        EXPECT_TRUE(std::equal(
            alone[0].begin(), alone[0].end(), together[0].begin(), together[0].end(),
            [](const RowResult& a, const RowResult& b) { return a.row == b.row && a.distance == b.distance; }));
    }
    cancel.cancel();
    std::vector<std::vector<RowResult>> results(1);
    EXPECT_THROW(searcher->search(batch, results, four), Cancelled);
}

TEST(DeltaParts, OfFewRowsFindWhatIsInTheListsProbed)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 4000, 600, make_list({{"lists", 200}}));
    fresh.append_in_parts(*fresh.mirror, 6);
    const std::vector<float> queries = fresh.queries(100);
    Fresh whole(Method::ivfadc, Metric::l2, 4600, 0, make_list({{"lists", 200}}));
    EXPECT_NEAR(fresh.recall(fresh.search(fresh.mirror, queries, 10, 20), queries, 10),
                whole.recall(whole.search(whole.mirror, queries, 10, 20), queries, 10), 0.02);
    const SearchAnswer all = fresh.search(fresh.mirror, queries, 10, 200);
    EXPECT_GE(fresh.recall(all, queries, 10), 0.99);
}

}  // namespace
}  // namespace pgwarp::listed_rows_test
