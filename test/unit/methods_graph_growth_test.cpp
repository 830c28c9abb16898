// graph: rows added to an index that exists, as merges add them.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "graph_pages.h"
#include "methods/graph/edge_changes.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"

namespace pgwarp::test::graph_growth_test
{
namespace
{

struct Case {
    Metric metric;
    std::int64_t vectors;
    std::size_t dimensions;
};

class GraphGrowth : public testing::TestWithParam<Case>
{
protected:
    // One cloud, so that recall depends on edges alone, not on the seeds.
    void make(std::size_t count)
    {
        const Case given = GetParam();
        std::mt19937 generator(1);
        std::normal_distribution<float> normal(0.2F, 1);
        rows.resize(count * given.dimensions);
        queries.resize(100 * given.dimensions);
        for (float& value : rows) value = normal(generator);
        for (float& value : queries) value = normal(generator);
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
    }
    std::vector<float> part(std::size_t begin, std::size_t end) const
    {
        const auto at = [&](std::size_t row) {
            return rows.begin() + static_cast<std::ptrdiff_t>(row * GetParam().dimensions);
        };
        return {at(begin), at(end)};
    }
    double recall_of(const Searcher& searcher, std::size_t count, std::uint32_t k)
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = 100;
        batch.k = k;
        batch.settings = make_list({{"ef_search", 100}});
        std::vector<std::vector<RowResult>> found;
        searcher.search(batch, found, pool);
        const std::vector<float> some = part(0, count);
        double total = 0;
        for (std::size_t q = 0; q < 100; ++q) {
            total += recall(found[q], brute_force(GetParam().metric, queries.data() + q * GetParam().dimensions, some,
                                                  GetParam().dimensions, 10));
        }
        return total / 100;
    }
    ThreadPool pool{2};
    std::vector<float> rows;
    std::vector<float> queries;
};

TEST_P(GraphGrowth, FindsAsMuchAsAnIndexOfAllRows)
{
    const auto [metric, vectors, dimensions] = GetParam();
    make(3000);
    const ParameterList options = make_list({{"vectors", vectors}});
    Pages pages(Index(Method::graph, metric, dimensions, part(0, 1500), options, pool));
    const Index fresh(Method::graph, metric, dimensions, rows, options, pool);
    const std::uint32_t k = vectors == 2 ? 64 : 10;
    std::set<bool> changed;
    std::size_t at = 1500;
    for (const std::size_t step : {1U, 30U, 350U, 619U, 500U}) {
        pages.grow(part(at, at + step), pool);
        at += step;
        ASSERT_EQ(pages.find("neighbours")->shape.rows, at);
        expect_sound(pages);
        changed.insert(pages.find("edge_changes") != nullptr);
    }
    ASSERT_EQ(at, 3000U);
    // Some merges left changes; others had so many changes that they wrote all edges.
    EXPECT_EQ(changed.size(), 2U);
    EXPECT_GE(recall_of(*pages.load(pool), at, k), recall_of(*fresh.searcher, at, k) - 0.015);
}

TEST_P(GraphGrowth, IsTheSameHoweverManyThreads)
{
    const auto [metric, vectors, dimensions] = GetParam();
    make(900);
    const Index index(Method::graph, metric, dimensions, part(0, 600), make_list({{"vectors", vectors}}), pool);
    Pages one(index);
    Pages several(index);
    ThreadPool alone(1);
    ThreadPool many(4);
    one.grow(part(600, 900), alone);
    several.grow(part(600, 900), many);
    EXPECT_TRUE(one.same_as(several));
}

// Added rows that are unlike all others are found as well: they are linked among themselves.
TEST_P(GraphGrowth, TakesInWhatLiesApart)
{
    const auto [metric, vectors, dimensions] = GetParam();
    make(1000);
    Pages pages(Index(Method::graph, metric, dimensions, part(0, 1000), make_list({{"vectors", vectors}}), pool));
    std::vector<float> apart = random_rows(300, dimensions, 9);
    for (float& value : apart) value = 0.1F * value - 4;
    if (metric == Metric::cosine) normalise_rows(apart, dimensions);
    pages.grow(apart, pool);
    expect_sound(pages);
    if (vectors == 2 || metric == Metric::inner_product) return;
    rows.insert(rows.end(), apart.begin(), apart.end());
    queries.assign(apart.begin(), apart.begin() + static_cast<std::ptrdiff_t>(100 * dimensions));
    EXPECT_GE(recall_of(*pages.load(pool), 1300, 10), vectors == 1 ? 0.9 : 0.97);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GraphGrowth,
                         testing::Values(Case{Metric::l2, 0, 16}, Case{Metric::l2, 1, 24}, Case{Metric::l2, 2, 24},
                                         Case{Metric::inner_product, 0, 24}, Case{Metric::cosine, 0, 24},
                                         Case{Metric::cosine, 2, 24}, Case{Metric::l1, 0, 12},
                                         Case{Metric::l1, 1, 12}));

// Rows that were inserted before lead back to a row that has few rows near it, and to one that has none.
TEST(GraphEdges, NameNoRowTwice)
{
    GraphEdges edges{4, {}};
    edges.neighbours.assign(std::size_t{5} * edges.degree, no_neighbour);
    insert_row(edges, 0, std::vector<std::uint32_t>{3, 4});
    insert_row(edges, 1, std::vector<std::uint32_t>{3, 0});
    insert_row(edges, 2, std::vector<std::uint32_t>{3, 4});
    insert_row(edges, 3, std::vector<std::uint32_t>{1});
    insert_row(edges, 4, {});
    const auto edges_of = [&](std::uint32_t row) {
        const std::span<const std::uint32_t> places = std::as_const(edges).of(row);
        return std::vector<std::uint32_t>(places.begin(), places.end());
    };
    EXPECT_EQ(edges_of(3), (std::vector<std::uint32_t>{1, 2, no_neighbour, no_neighbour}));
    EXPECT_EQ(edges_of(4), (std::vector<std::uint32_t>{0, 2, no_neighbour, no_neighbour}));
}

// Rows added all at once give the same edges as rows added one by one.
TEST(EdgeChanges, LastOnesWin)
{
    std::mt19937 generator(3);
    std::vector<EdgeChange> changes;
    const auto draw = [&](std::uint32_t below) { return static_cast<std::uint32_t>(generator() % below); };
    for (int i = 0; i < 500; ++i) changes.push_back({draw(20), draw(6), i % 9 == 0 ? no_neighbour : draw(20)});
    std::vector<std::uint32_t> one_by_one(20 * 6, 7);
    std::vector<std::uint32_t> at_once = one_by_one;
    apply_changes(one_by_one, 6, changes);
    const std::vector<EdgeChange> last = last_changes(20, 6, changes);
    std::set<std::size_t> places;
    for (const EdgeChange& change : last) EXPECT_TRUE(places.insert(change.row * 6 + change.place).second);
    apply_changes(at_once, 6, last);
    EXPECT_EQ(at_once, one_by_one);
    EXPECT_THROW(last_changes(19, 6, changes), BadRequest);
    EXPECT_THROW(last_changes(20, 5, changes), BadRequest);
}

TEST(GraphMergeBuilder, RefusesWhatNoIndexHolds)
{
    ThreadPool pool(2);
    const std::vector<float> vectors = random_rows(500, 8, 3);
    const Index index(Method::graph, Metric::l2, 8, vectors, {}, pool);
    const ParameterList options = index.builder->effective_options();
    // Gives all arrays, one of them altered, and runs.
    const auto grow = [&](const char* altered, const std::function<void(std::vector<std::byte>&)>& alter) {
        const auto merge_builder = find_method(Method::graph)->make_merge_builder(index.shape, options);
        for (const ArrayShape& shape : index.builder->arrays()) {
            std::vector<std::byte> bytes = index.contents(shape);
            if (std::strcmp(shape.name, altered) == 0) alter(bytes);
            if (!bytes.empty()) merge_builder->give(shape, 0, bytes);
        }
        RowBuffer added(8);
        const Tid tid{1, 1, 0};
        added.append({&tid, 1}, {vectors.data(), 8});
        merge_builder->run(added, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    };
    EXPECT_NO_THROW(grow("", [](std::vector<std::byte>&) {}));
    EXPECT_THROW(grow("seeds", [](std::vector<std::byte>& bytes) { bytes[2] = std::byte{1}; }), BadRequest);
    EXPECT_THROW(grow("neighbours", [](std::vector<std::byte>& bytes) { bytes[2] = std::byte{1}; }), BadRequest);
    EXPECT_THROW(grow("neighbours", [](std::vector<std::byte>& bytes) { bytes.resize(100); }), BadRequest);
    EXPECT_THROW(grow("vectors", [](std::vector<std::byte>& bytes) { bytes.clear(); }), BadRequest);
    const auto merge_builder = find_method(Method::graph)->make_merge_builder(index.shape, options);
    const std::vector<std::byte> bytes(64);
    EXPECT_THROW(merge_builder->give(make_array_shape("half", ArrayType::f16, 4, 8), 0, bytes), BadRequest);
    EXPECT_THROW(merge_builder->give(make_array_shape("vectors", ArrayType::f32, 4, 9), 0, bytes), BadRequest);
    EXPECT_THROW(merge_builder->give(make_array_shape("vectors", ArrayType::f32, 1, 8), 0, bytes), BadRequest);
    EdgeChange change{3, 99, 4};
    GraphEdges edges{32, {}};
    edges.neighbours.resize(10 * 32, no_neighbour);
    EXPECT_THROW(apply_changes(edges, {&change, 1}), BadRequest);
    change = {10, 0, 4};
    EXPECT_THROW(apply_changes(edges, {&change, 1}), BadRequest);
    change = {3, 0, 10};
    EXPECT_THROW(apply_changes(edges, {&change, 1}), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test::graph_growth_test
