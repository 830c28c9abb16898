// graph: answers against brute force in float64, and the invariants of a build's edges.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "graph_reference.h"
#include "methods/arrays.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/nearest_rows.h"
#include "methods/graph/row_groups.h"
#include "methods/graph/traversal.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "protocol/calibration.h"
#include "vector_index_checks.h"

namespace pgwarp::test::graph_test
{
namespace
{

constexpr std::int64_t full = 0;
constexpr std::int64_t half = 1;
constexpr std::int64_t bits = 2;

ParameterList ef(std::int64_t value)
{
    return make_list({{"ef_search", value}});
}

std::vector<std::uint64_t> dead_rows(std::size_t rows, const std::vector<std::uint32_t>& dead)
{
    std::vector<std::uint64_t> bitmap((rows + 63) / 64, 0);
    for (const std::uint32_t row : dead) set_bit(bitmap, row);
    return bitmap;
}

template <class Element>
std::vector<Element> array_of(const Index& index, const char* name)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const ArrayShape* shape = find_array(arrays, name);
    if (shape == nullptr) return {};
    const std::vector<std::byte> bytes = index.contents(*shape);
    std::vector<Element> values(bytes.size() / sizeof(Element));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

GraphEdges edges_of(const Index& index)
{
    const auto neighbours = array_of<std::uint32_t>(index, array_neighbours);
    GraphEdges edges;
    edges.degree = static_cast<std::size_t>(index.builder->effective_options().get("degree", 0));
    edges.neighbours.assign(neighbours.begin(), neighbours.end());
    return edges;
}

// No row is its own neighbour or listed twice, unused places come last, and all are reached from the first seed.
void expect_sound(const Index& index)
{
    const GraphEdges edges = edges_of(index);
    const auto seeds = array_of<std::uint32_t>(index, array_seeds);
    ASSERT_FALSE(seeds.empty());
    for (const std::uint32_t seed : seeds) ASSERT_LT(seed, edges.count());
    ASSERT_EQ(std::set(seeds.begin(), seeds.end()).size(), seeds.size());
    for (std::size_t row = 0; row < edges.count(); ++row) {
        std::set<std::uint32_t> seen;
        bool ended = false;
        for (const std::uint32_t to : edges.of(row)) {
            if (to == no_neighbour) {
                ended = true;
                continue;
            }
            ASSERT_FALSE(ended) << row;
            ASSERT_LT(to, edges.count());
            ASSERT_NE(to, row);
            ASSERT_TRUE(seen.insert(to).second) << row;
        }
    }
    EXPECT_EQ(count_reachable(edges, seeds[0]), edges.count());
}

struct Case {
    Metric metric;
    std::int64_t vectors;
    std::size_t dimensions;
};

class GraphAnswers : public testing::TestWithParam<Case>
{
protected:
    void make(std::size_t count)
    {
        const Case given = GetParam();
        rows = random_rows(count, given.dimensions, 1);
        queries = random_rows(50, given.dimensions, 1);
        for (float& value : queries) value = 0.97F * value + 0.02F;
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
    }
    ThreadPool pool{2};
    std::vector<float> rows;
    std::vector<float> queries;
};

TEST_P(GraphAnswers, FindNearlyAllAndKeepTheirPromise)
{
    const auto [metric, vectors, dimensions] = GetParam();
    make(4000);
    const Index index(Method::graph, metric, dimensions, rows, make_list({{"vectors", vectors}}), pool);
    expect_sound(index);
    const ResultKind kind = index.searcher->result_kind();
    const std::uint32_t k = kind == ResultKind::approximate ? 100 : 10;
    const auto found = index.search(queries, k, pool, ef(200));
    double total = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        const float* query = queries.data() + q * dimensions;
        ASSERT_EQ(found[q].size(), k);
        for (std::size_t i = 0; i < k; ++i) {
            const RowResult& result = found[q][i];
            if (i > 0) {
                ASSERT_TRUE(comes_before(found[q][i - 1], result));
            }
            const double exact = canonical_distance(metric, query, rows.data() + result.row * dimensions, dimensions);
            if (kind == ResultKind::exact) {
                ASSERT_EQ(result.distance, exact);
            }
            if (kind != ResultKind::lower_bound) continue;
            ASSERT_LE(result.distance, exact);
            ASSERT_LE(exact, result.distance + index.searcher->bound_width(query) + 1e-9 * std::fabs(exact));
        }
        total += recall(found[q], brute_force(metric, query, rows, dimensions, 10));
    }
    EXPECT_GE(total / static_cast<double>(found.size()), vectors == bits ? 0.9 : 0.98);
}

TEST_P(GraphAnswers, FindEveryRowWhereAsManyAreAskedFor)
{
    const auto [metric, vectors, dimensions] = GetParam();
    make(700);
    const Index index(Method::graph, metric, dimensions, rows, make_list({{"vectors", vectors}, {"degree", 4}}), pool);
    expect_sound(index);
    const std::vector<float> query(queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(dimensions));
    for (const std::uint32_t k : {700U, 5000U}) {
        const auto found = index.search(query, k, pool, ef(1))[0];
        ASSERT_EQ(found.size(), 700U);
        if (index.searcher->result_kind() == ResultKind::exact) {
            EXPECT_EQ(ids(found), ids(brute_force(metric, query.data(), rows, dimensions, 700)));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GraphAnswers,
                         testing::Values(Case{Metric::l2, full, 24}, Case{Metric::l2, half, 24},
                                         Case{Metric::l2, bits, 24}, Case{Metric::inner_product, full, 24},
                                         Case{Metric::inner_product, half, 24}, Case{Metric::cosine, full, 24},
                                         Case{Metric::cosine, half, 24}, Case{Metric::cosine, bits, 24},
                                         Case{Metric::l1, full, 24}, Case{Metric::l1, half, 24},
                                         Case{Metric::l2, full, 3}, Case{Metric::l2, full, 130},
                                         Case{Metric::inner_product, full, 3}));

// Rows of very different length: the nearest ones are mostly long.
TEST(Graph, FindsTheLargestProductsOfRowsOfManyLengths)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(4000, 16, 21);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= 0.1F + static_cast<float>((i / 16) % 50) / 10;
    const std::vector<float> queries = random_rows(40, 16, 21);
    const Index index(Method::graph, Metric::inner_product, 16, rows, {}, pool);
    expect_sound(index);
    const auto found = index.search(queries, 10, pool, ef(200));
    double total = 0;
    for (std::size_t q = 0; q < found.size(); ++q)
        total += recall(found[q], brute_force(Metric::inner_product, queries.data() + q * 16, rows, 16, 10));
    EXPECT_GE(total / static_cast<double>(found.size()), 0.98);
}

TEST(Graph, AnswersSmallTables)
{
    ThreadPool pool(2);
    for (const std::int64_t vectors : {full, half, bits}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
            const auto options = make_list({{"vectors", vectors}});
            const Index none(Method::graph, metric, 2, {}, options, pool);
            EXPECT_TRUE(none.search({1, 0}, 10, pool)[0].empty());
            EXPECT_EQ(none.builder->calibration().count, 0U);
            std::vector<float> rows;
            for (std::size_t count = 1; count <= 12; ++count) {
                rows.insert(rows.end(), {1 / std::sqrt(static_cast<float>(count * count + 1)),
                                         static_cast<float>(count) / std::sqrt(static_cast<float>(count * count + 1))});
                const Index index(Method::graph, metric, 2, rows, options, pool);
                expect_sound(index);
                EXPECT_EQ(index.search({0, 1}, 20, pool)[0].size(), count);
                const auto found = index.search({0, 1}, 1, pool)[0];
                ASSERT_EQ(found.size(), 1U);
                if (vectors != bits) {
                    EXPECT_EQ(found[0].row, count - 1);
                }
            }
        }
    }
}

TEST(Graph, FindsEqualRows)
{
    ThreadPool pool(2);
    for (const std::int64_t vectors : {full, half, bits}) {
        const auto options = make_list({{"vectors", vectors}});
        const Index index(Method::graph, Metric::l2, 3, std::vector<float>(3 * 3000, 1.5F), options, pool);
        expect_sound(index);
        const auto found = index.search({1.5F, 1.5F, 1.5F}, 50, pool)[0];
        ASSERT_EQ(found.size(), 50U);
        if (vectors == full) {
            for (const RowResult& result : found) EXPECT_EQ(result.distance, 0);
        }
        EXPECT_EQ(index.search({0, 0, 0}, 3000, pool)[0].size(), 3000U);
    }
}

TEST(Graph, FindsRowsBesideMassesOfDuplicates)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(3000, 8, 31);
    for (std::size_t i = 0; i < 8 * 1500; ++i) rows[i] = rows[i % 8];
    const Index index(Method::graph, Metric::l2, 8, rows, {}, pool);
    expect_sound(index);
    double total = 0;
    for (std::size_t q = 0; q < 40; ++q) {
        const std::vector<float> query(rows.begin() + static_cast<std::ptrdiff_t>((1600 + q * 30) * 8),
                                       rows.begin() + static_cast<std::ptrdiff_t>((1601 + q * 30) * 8));
        const auto found = index.search(query, 10, pool, ef(100))[0];
        EXPECT_EQ(found.at(0).row, 1600 + q * 30);
        total += recall(found, brute_force(Metric::l2, query.data(), rows, 8, 10));
    }
    EXPECT_GE(total / 40, 0.95);
}

TEST(Graph, PassesThroughDeadRows)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(3000, 8, 3);
    const Index index(Method::graph, Metric::l2, 8, rows, {}, pool);
    const std::vector<float> query = random_rows(1, 8, 3);
    // The nearest are dead, and then 95 of 100 rows.
    auto dead = dead_rows(3000, ids(brute_force(Metric::l2, query.data(), rows, 8, 200)));
    for (int round = 0; round < 2; ++round) {
        const auto found = index.search(query, 10, pool, ef(40), dead)[0];
        ASSERT_EQ(found.size(), 10U);
        for (const RowResult& result : found) EXPECT_FALSE(bit_is_set(dead, result.row));
        EXPECT_GE(recall(found, brute_force(Metric::l2, query.data(), rows, 8, 10, dead)), 0.9);
        for (std::uint32_t row = 0; row < 3000; ++row)
            if (row % 20 != 1) set_bit(dead, row);
    }
    EXPECT_EQ(index.search(query, 3000, pool, {}, dead)[0].size(),
              brute_force(Metric::l2, query.data(), rows, 8, 3000, dead).size());
    const std::vector<std::uint64_t> all(dead.size(), ~std::uint64_t{0});
    EXPECT_TRUE(index.search(query, 10, pool, {}, all)[0].empty());
}

// The queue is longer for dead rows; when these leave it, so do the rows beyond its limit, also those not yet expanded.
TEST(Graph, ForgetsWhatLiesBehindTheLastRowKept)
{
    BestRows best;
    best.begin(1, 0);
    const auto insert = [&](float score, bool dead) {
        const auto row = static_cast<std::uint32_t>(100 * score);
        if (best.takes(score, row)) best.insert(score, row, dead);
    };
    for (const float score : {3.0F, 4.0F, 5.0F}) insert(score, true);
    for (const float score : {1.0F, 2.0F, 2.25F}) insert(score, false);
    ASSERT_EQ(best.entries().size(), 6U);
    while (best.expand_next(SIZE_MAX) != nullptr) continue;
    insert(2.5F, false);
    ASSERT_EQ(best.entries().size(), 1U);
    EXPECT_EQ(best.entries()[0].row, 100U);
    EXPECT_EQ(best.expand_next(SIZE_MAX), nullptr);
}

TEST(Graph, ContinuationsGoOnWhereTheLastEnded)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(1000, 4, 8);
    for (float& value : rows) value = std::round(value);
    const std::vector<float> query{0, 0, 0, 0};
    const Index index(Method::graph, Metric::l2, 4, rows, {}, pool);
    EXPECT_EQ(ids(expect_every_row_once(index, query, 1000, pool)),
              ids(brute_force(Metric::l2, query.data(), rows, 4, 1000)));
}

TEST(Graph, AnswersAloneAsInABatch)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(3000, 20, 5);
    const std::vector<float> queries = random_rows(30, 20, 6);
    const Index index(Method::graph, Metric::l2, 20, rows, {}, pool);
    const auto together = index.search(queries, 10, pool, ef(50));
    for (std::size_t q = 0; q < 30; ++q) {
        const std::vector<float> query(queries.begin() + static_cast<std::ptrdiff_t>(q * 20),
                                       queries.begin() + static_cast<std::ptrdiff_t>((q + 1) * 20));
        EXPECT_EQ(ids(index.search(query, 10, pool, ef(50))[0]), ids(together[q]));
    }
}

TEST(Graph, BuildsTheSameOnAnyNumberOfThreads)
{
    // Enough rows that a build does not compare all with all.
    expect_same_on_any_threads(Method::graph, random_rows(9000, 20, 7), 20, {});
}

TEST(Graph, TellsTheEffortOfASearch)
{
    ThreadPool pool(2);
    const Index index(Method::graph, Metric::l2, 24, random_rows(2000, 24, 9), {}, pool);
    SearchBatch batch;
    batch.k = 10;
    batch.effort = 77;
    EXPECT_EQ(index.searcher->resolved_settings(batch).get("ef_search", 0), 77);
    batch.settings.set("ef_search", 33);
    EXPECT_EQ(index.searcher->resolved_settings(batch).get("ef_search", 0), 33);
}

// A searcher of an index with other edges.
std::unique_ptr<Searcher> with_edges(const Index& index, const GraphEdges& edges, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    auto searcher = make_graph_searcher(index.shape, index.builder->effective_options(), arrays);
    for (const ArrayShape& array : arrays) {
        if (std::strcmp(array.name, array_neighbours) == 0) {
            searcher->write(array.name, 0, std::as_bytes(std::span(edges.neighbours)));
        } else {
            searcher->write(array.name, 0, index.contents(array));
        }
    }
    searcher->finish_load(pool);
    return searcher;
}

struct Truth {
    Truth(const std::vector<float>& given, const std::vector<float>& rows, std::size_t dimensions) : queries(given)
    {
        for (std::size_t q = 0; q < queries.size(); q += dimensions)
            nearest.push_back(brute_force(Metric::l2, queries.data() + q, rows, dimensions, 10));
    }
    double recall_of(const Searcher& searcher, const ParameterList& settings, ThreadPool& pool) const
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = nearest.size();
        batch.k = 10;
        batch.settings = settings;
        std::vector<std::vector<RowResult>> found;
        searcher.search(batch, found, pool);
        double total = 0;
        for (std::size_t q = 0; q < batch.count; ++q) total += recall(found[q], nearest[q]);
        return total / static_cast<double>(batch.count);
    }
    std::vector<float> queries;
    std::vector<std::vector<RowResult>> nearest;
};

TEST(Graph, BuiltByGroupsIsAsGoodAsByComparingAll)
{
    ThreadPool pool(2);
    constexpr std::size_t dimensions = 24;
    // One cloud: rows at the border of a group are the hard ones, and most rows lie there.
    std::mt19937 generator(41);
    std::normal_distribution<float> normal;
    std::vector<float> all(12300 * dimensions);
    for (float& value : all) value = normal(generator);
    const std::vector<float> queries(all.begin(), all.begin() + 300 * dimensions);
    const std::vector<float> rows(all.begin() + 300 * dimensions, all.end());
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    const Index index(Method::graph, Metric::l2, dimensions, rows, {}, pool);
    const auto seeds = array_of<std::uint32_t>(index, array_seeds);
    const GraphSpace space(Metric::l2, rows, dimensions, pool);
    const RowGroups groups = group_rows(space, seed_count(12000), {}, progress, pool);
    const NearestRows exact = exact_nearest_rows(space, 64, {}, pool);
    GraphEdges edges = draw_edges(exact, 32, groups.rows, progress, pool);
    connect_rows(edges, seeds, {}, progress);
    const auto reference = with_edges(index, edges, pool);
    const Truth truth(queries, rows, dimensions);
    for (const std::int64_t kept : {20, 60}) {
        EXPECT_GE(truth.recall_of(*index.searcher, ef(kept), pool), truth.recall_of(*reference, ef(kept), pool) - 0.005)
            << kept;
    }
}

TEST(Graph, GroupsOfEqualRowsTakeNoLonger)
{
    ThreadPool pool(2);
    // Were each compared with its whole group, this would take minutes.
    std::vector<float> rows(60000 * 8, 2.5F);
    for (std::size_t i = 0; i < 8 * 3000; ++i) rows[i] = static_cast<float>(i % 1009);
    const Index index(Method::graph, Metric::l2, 8, rows, {}, pool);
    expect_sound(index);
    const std::vector<float> query(rows.begin() + 8 * 500, rows.begin() + 8 * 501);
    const auto found = index.search(query, 1, pool, ef(50))[0];
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].distance, 0);
}

// Small clusters far apart: a search that begins in the wrong one does not leave it.
TEST(Graph, ReachesWhatItPromisesOfManyTightClusters)
{
    ThreadPool pool(2);
    for (const std::size_t clusters : {40U, 120U, 400U}) {
        constexpr std::size_t dimensions = 32;
        constexpr std::size_t count = 12300;
        std::mt19937 generator(51);
        std::normal_distribution<float> normal;
        std::vector<float> centres(clusters * dimensions);
        for (float& value : centres) value = 100 * normal(generator);
        std::vector<float> all(count * dimensions);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t cluster = generator() % clusters;
            for (std::size_t d = 0; d < dimensions; ++d)
                all[i * dimensions + d] = centres[cluster * dimensions + d] + 0.05F * normal(generator);
        }
        const std::vector<float> queries(all.begin(), all.begin() + 300 * dimensions);
        const std::vector<float> rows(all.begin() + 300 * dimensions, all.end());
        const Index index(Method::graph, Metric::l2, dimensions, rows, {}, pool);
        expect_sound(index);
        const Truth truth(queries, rows, dimensions);
        for (const double asked : {0.9, 0.95, 0.99}) {
            const EffortChoice choice = choose_effort(index.builder->calibration(), 10, asked);
            ASSERT_TRUE(choice.reached);
            EXPECT_GE(truth.recall_of(*index.searcher, ef(choice.effort), pool), asked - 0.01) << clusters;
        }
    }
}

TEST(Graph, RefusesWhatMakesNoSense)
{
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(100, 8, 10);
    for (const auto& options : {make_list({{"degree", 3}}), make_list({{"degree", 257}}),
                                make_list({{"build_degree", -1}}), make_list({{"vectors", 3}}),
                                make_list({{"vectors", 2}, {"bits", 40}}), make_list({{"vectors", 2}, {"bits", 544}})})
        EXPECT_THROW(Index(Method::graph, Metric::l2, 8, rows, options, pool), BadRequest);
    const Index index(Method::graph, Metric::l2, 8, rows, {}, pool);
    std::vector<ArrayShape> arrays = index.builder->arrays();
    const ParameterList options = index.builder->effective_options();
    // A neighbour, and a seed, that is no row.
    for (const char* wrong : {array_neighbours, array_seeds}) {
        const auto searcher = make_graph_searcher(index.shape, options, arrays);
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes = index.contents(array);
            if (std::strcmp(array.name, wrong) == 0) bytes[1] = std::byte{1};
            searcher->write(array.name, 0, bytes);
        }
        EXPECT_THROW(searcher->finish_load(pool), BadRequest) << wrong;
    }
    std::erase_if(arrays, [](const ArrayShape& array) { return std::strcmp(array.name, array_seeds) == 0; });
    EXPECT_THROW(make_graph_searcher(index.shape, options, arrays), BadRequest);
}

TEST(Graph, EndsWhenCancelled)
{
    ThreadPool pool(2);
    const std::vector<float> vectors = random_rows(2000, 8, 11);
    RowBuffer rows(8);
    std::vector<Tid> tids(2000);
    for (std::uint32_t i = 0; i < 2000; ++i) tids[i] = {i, 1, 0};
    rows.append(tids, vectors);
    CancelToken cancel;
    IndexShape shape{};
    shape.method = Method::graph;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = 8;
    const auto builder = make_graph_builder(shape, {});
    const BuildProgress progress{[&](const char* phase, std::uint64_t, std::uint64_t) {
                                     if (std::strcmp(phase, "pruning edges") == 0) cancel.cancel();
                                 },
                                 &cancel};
    EXPECT_THROW(builder->run(rows, progress, pool), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test::graph_test
