// Pruning by rank and joining of edges as the device does them, by groups of threads of the CPU, against the CPU's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/detours.h"
#include "graph/form.h"
#include "graph/launch_config.h"
#include "graph_reference.h"
#include "host_group.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"

namespace pgwarp::test
{
namespace
{

using namespace cuda::graph;

std::vector<std::uint32_t> draw_by_groups(const NearestRows& nearest, std::uint32_t degree, std::uint32_t threads)
{
    const auto width = static_cast<std::uint32_t>(nearest.width);
    const auto rows = static_cast<std::uint32_t>(nearest.rows.size() / width);
    const std::uint32_t bits = detour_bits(width);
    std::vector<std::uint32_t> near(width);
    std::vector<std::uint32_t> detours(width);
    std::vector<std::uint32_t> slots(std::size_t{1} << bits);
    std::vector<std::uint32_t> places(std::size_t{1} << bits);
    std::vector<std::uint32_t> forward(std::size_t{rows} * degree);
    HostGroup::run(threads, [&](HostGroup group) {
        DetourOrder<HostGroup> order(group, {near.data(), detours.data(), slots.data(), places.data(), bits});
        for (std::uint32_t row = 0; row < rows; ++row) {
            order.draw(nearest.rows.data(), width, row, degree, forward.data() + std::size_t{row} * degree);
        }
    });
    std::vector<std::vector<std::uint32_t>> reverse(rows);
    for (std::uint32_t rank = 0; rank < degree; ++rank) {
        for (std::uint32_t row = 0; row < rows; ++row) {
            const std::uint32_t to = forward[std::size_t{row} * degree + rank];
            if (to != no_neighbour) reverse[to].push_back(row);
        }
    }
    std::vector<std::uint32_t> all(forward.size());
    std::vector<std::uint32_t> space(6 * std::size_t{degree});
    HostGroup::run(threads, [&](HostGroup group) {
        for (std::uint32_t row = 0; row < rows; ++row) {
            const std::size_t place = std::size_t{row} * degree;
            join_edges(group, JoinMemory{space.data(), space.data() + 3 * degree}, forward.data() + place,
                       reverse[row].data(), static_cast<std::uint32_t>(reverse[row].size()), degree,
                       all.data() + place);
        }
    });
    return all;
}

struct Shape {
    std::uint32_t rows;
    std::uint32_t width;
    std::uint32_t degree;
    std::uint32_t threads;
};

class DrawnEdges : public testing::TestWithParam<Shape>
{
};

TEST_P(DrawnEdges, AreThoseOfTheCpu)
{
    const Shape shape = GetParam();
    const NearestRows nearest = circle_lists(shape.rows, shape.width, 3);
    ThreadPool pool(1);
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    std::vector<std::uint32_t> all(shape.rows);
    std::iota(all.begin(), all.end(), 0U);
    const GraphEdges expected = draw_edges(nearest, shape.degree, all, progress, pool);
    const std::vector<std::uint32_t> found = draw_by_groups(nearest, shape.degree, shape.threads);
    ASSERT_EQ(found.size(), expected.neighbours.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.neighbours.begin()));
}

INSTANTIATE_TEST_SUITE_P(Graph, DrawnEdges,
                         testing::Values(Shape{600, 24, 12, 1}, Shape{300, 40, 7, 1}, Shape{60, 16, 16, 3},
                                         Shape{40, 9, 4, 2}, Shape{700, 64, 32, 1}));

// A breadth-first search by the caller, as a device makes it, gives the same edges as one made here.
TEST(ConnectedRows, TakeASearchThatWasMade)
{
    const NearestRows nearest = circle_lists(3000, 12, 17);
    std::vector<std::uint32_t> all(3000);
    std::iota(all.begin(), all.end(), 0U);
    ThreadPool pool(1);
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
    GraphEdges edges = draw_edges(nearest, 4, all, progress, pool);
    // Redirect edges to rows 7 i + 3, so that no edges lead to these rows.
    for (std::uint32_t& to : edges.neighbours) {
        if (to % 7 == 3) to = (to + 1) % 3000;
    }
    for (std::size_t row = 0; row < edges.count(); ++row) {
        const auto own = edges.of(row);
        std::set<std::uint32_t> kept(own.begin(), own.end());
        kept.erase(static_cast<std::uint32_t>(row));
        kept.erase(no_neighbour);
        std::fill(std::copy(kept.begin(), kept.end(), own.begin()), own.end(), no_neighbour);
    }
    ASSERT_LT(count_reachable(edges, 5), 3000);
    std::size_t asked = 0;
    const auto reach = [&](const GraphEdges& from_edges, std::span<const std::uint32_t> from) {
        ++asked;
        std::vector<std::uint32_t> parents(from_edges.count(), unreached_row);
        std::vector<std::uint32_t> level(from.begin(), from.end());
        for (const std::uint32_t row : from) parents[row] = root_row;
        for (std::size_t i = 0; i < level.size(); ++i) {
            for (const std::uint32_t to : from_edges.of(level[i])) {
                if (to == no_neighbour || parents[to] != unreached_row) continue;
                parents[to] = level[i];
                level.push_back(to);
            }
        }
        return parents;
    };
    GraphEdges here = edges;
    const std::vector<std::uint32_t> seeds{5, 100, 2000};
    connect_rows(edges, seeds, {}, progress, reach);
    connect_rows(here, seeds, {}, progress);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(count_reachable(edges, 5), 3000);
    EXPECT_TRUE(std::equal(edges.neighbours.begin(), edges.neighbours.end(), here.neighbours.begin()));
}

DeviceLimits ground_of(std::size_t shared_bytes)
{
    DeviceLimits limits;
    limits.rows = 1000000;
    limits.degree = 32;
    limits.seeds = 8192;
    limits.row_bytes = 256;
    limits.query_bytes = 512;
    limits.multiprocessors = 132;
    limits.shared_bytes = shared_bytes;
    limits.clusters = true;
    return limits;
}

// Parameters that affect the answer must not depend on the batch.
TEST(LaunchConfigs, FindTheSameInEveryBatch)
{
    for (const std::size_t ef : {1, 10, 31, 64, 200, 1000, 4096}) {
        const LaunchConfig one = launch_config({}, ef, 10, 1, ground_of(227 << 10));
        EXPECT_TRUE(one.plain());
        for (const std::size_t count : {2, 64, 1000, 10000, 100000}) {
            const LaunchConfig other = launch_config({}, ef, 10, count, ground_of(227 << 10));
            EXPECT_EQ(other.traversal.ef, one.traversal.ef);
            EXPECT_EQ(other.traversal.length, one.traversal.length);
            EXPECT_EQ(other.traversal.steps, one.traversal.steps);
            EXPECT_EQ(other.traversal.again, one.traversal.again);
            EXPECT_EQ(other.seeds, one.seeds);
            EXPECT_EQ(other.starts, one.starts);
            EXPECT_EQ(other.logical_warp, one.logical_warp);
            EXPECT_EQ(other.wanted, one.wanted);
        }
    }
}

TEST(LaunchConfigs, SmallBatchesTakeHalfOfADevice)
{
    const DeviceLimits limits = ground_of(227 << 10);  // 132 multiprocessors
    const std::pair<std::size_t, std::uint32_t> expected[] = {{1, 8},  {8, 8},  {9, 4}, {16, 4},
                                                              {17, 2}, {33, 2}, {34, 1}};
    for (const auto& [count, blocks] : expected) {
        const LaunchConfig config = launch_config({}, 128, 10, count, limits);
        EXPECT_EQ(config.cluster, blocks) << count << " queries";
        EXPECT_EQ(config.shares_scores, blocks > 1) << count << " queries";
    }
}

// Where the queue keeps more rows than are expanded, as in searches with predicates, it does so in every batch.
TEST(LaunchConfigs, KeepAsManyRowsInEveryBatch)
{
    for (const std::size_t shared : {std::size_t{64} << 10, std::size_t{99} << 10, std::size_t{227} << 10}) {
        for (const std::size_t query_bytes : {128, 3072, 9136, 14256}) {
            DeviceLimits limits = ground_of(shared);
            limits.clusters = shared == 227 << 10;
            limits.query_bytes = limits.row_bytes = query_bytes;
            for (std::size_t length = 64; length <= most_ef; length *= 2) {
                ParameterList settings;
                settings.set("queue_length", static_cast<std::int64_t>(length));
                for (const std::size_t ef : {length / 2 + 1, length * 3 / 4, length}) {
                    const LaunchConfig many = launch_config(settings, ef, 26, 10000, limits);
                    if (many.shared_bytes > shared) continue;
                    EXPECT_GE(many.traversal.length, ef);
                    for (const std::size_t count : {1, 20, 33, 132, 133, 300, 1000}) {
                        const LaunchConfig other = launch_config(settings, ef, 26, count, limits);
                        EXPECT_LE(other.shared_bytes, shared);
                        EXPECT_EQ(other.traversal.length, many.traversal.length);
                        EXPECT_EQ(other.chosen, many.chosen);
                    }
                }
            }
        }
    }
}

TEST(LaunchConfigs, AreWhatADeviceCanDo)
{
    for (const std::size_t shared : {std::size_t{64} << 10, std::size_t{99} << 10, std::size_t{227} << 10}) {
        // A block of 64 KB has room for both sides of a queue of some less.
        for (const std::size_t ef :
             {std::size_t{1}, std::size_t{64}, shared < (99 << 10) ? std::size_t{3584} : std::size_t{most_ef}}) {
            for (const std::int64_t option : {0, 1, 2, 3, 4, 7, 16, 1000}) {
                ParameterList settings;
                for (const char* name :
                     {"multi_step", "visited", "visited_bits", "unbounded_queue", "selected_insertion",
                      "visited_deletion", "multi_query", "routes", "seeds", "starts", "lanes", "team"}) {
                    settings.set(name, option);
                }
                const LaunchConfig shape = launch_config(settings, ef, 10, 300, ground_of(shared));
                EXPECT_LE(shape.shared_bytes, shared) << "ef " << ef << ", option " << option;
                EXPECT_GE(shape.traversal.most_batch, shape.traversal.together() * shape.traversal.degree);
                EXPECT_GE(shape.traversal.length, shape.traversal.ef);
                EXPECT_LE(shape.wanted, shape.traversal.ef);
                EXPECT_LE(shape.logical_warp, shape.lanes);
                EXPECT_GE(shape.logical_warp, 4);
                EXPECT_LE(shape.block_threads(), 256);
                EXPECT_GE(shape.launch_queries, 1);
                if (shape.lanes < 32) {
                    EXPECT_EQ(shape.groups * shape.lanes, 32);
                }
            }
        }
    }
}

// A batch goes in chunks, and what one leaves is searched again: where a device has a search of the batch, it has it of
// each part.
TEST(LaunchConfigs, FitInEachPartOfABatch)
{
    std::size_t too_large = 0;
    std::string first;
    for (const std::size_t shared : {std::size_t{64} << 10, std::size_t{99} << 10, std::size_t{227} << 10}) {
        for (std::size_t query_bytes = 512; query_bytes <= 64000; query_bytes += 512) {
            for (std::size_t ef = 64; ef <= most_ef; ef += 64) {
                DeviceLimits limits = ground_of(shared);
                limits.degree = 64;
                limits.clusters = shared == 227 << 10;
                limits.row_bytes = query_bytes;
                limits.query_bytes = query_bytes;
                if (launch_config({}, ef, 10, 1000, limits).shared_bytes > shared) continue;
                for (const std::size_t part : {1, 30, 132, 133, 999}) {
                    if (launch_config({}, ef, 26, part, limits).shared_bytes <= shared) continue;
                    ++too_large;
                    if (!first.empty()) continue;
                    first = std::to_string(query_bytes) + " bytes a query, ef " + std::to_string(ef) + ", " +
                            std::to_string(part) + " of 1000 queries, " + std::to_string(shared) + " bytes";
                }
            }
        }
    }
    EXPECT_EQ(too_large, 0U) << first;
}

// The answer is the same for a single query and for a large batch; the launch is not.
TEST(LaunchConfigs, OfFewQueriesReadAhead)
{
    for (const std::size_t ef : {1, 10, 100, 1000}) {
        const LaunchConfig one = launch_config({}, ef, 26, 1, ground_of(227 << 10));
        const LaunchConfig many = launch_config({}, ef, 26, 10000, ground_of(227 << 10));
        EXPECT_EQ(one.traversal.ef, many.traversal.ef);
        EXPECT_EQ(one.traversal.length, many.traversal.length);
        EXPECT_EQ(one.traversal.steps, many.traversal.steps);
        EXPECT_EQ(one.traversal.early(), many.traversal.early());
        EXPECT_EQ(one.traversal.again, many.traversal.again);
        EXPECT_EQ(one.starts, many.starts);
        EXPECT_EQ(one.wanted, many.wanted);
        EXPECT_EQ(one.logical_warp, many.logical_warp);
        EXPECT_TRUE(one.ranks);
        EXPECT_FALSE(many.ranks);
        EXPECT_EQ(one.traversal.ahead, one.shares_scores ? 0 : one.traversal.together());
        EXPECT_EQ(many.traversal.ahead, 0);
        EXPECT_EQ(many.traversal.ranked, 0);
        EXPECT_EQ(many.cluster, 1);
        EXPECT_GE(one.layout().again, one.layout().parents + one.traversal.warps * one.traversal.places() * 4);
    }
    // A separate launch ranks when rows are too many for a block to count, and when a warp or less has a query.
    EXPECT_FALSE(launch_config({}, 1000, 300, 1, ground_of(227 << 10)).ranks);
    ParameterList warp;
    warp.set("lanes", 32);
    EXPECT_FALSE(launch_config(warp, 100, 26, 1, ground_of(227 << 10)).ranks);
}

// Where blocks form a cluster, those that are resident at once share the seeds.
TEST(LaunchConfigs, OfFewQueriesShareSeeds)
{
    DeviceLimits limits = ground_of(227 << 10);
    limits.clusters = true;
    limits.multiprocessors = 132;
    limits.seeds = 2500;
    const LaunchConfig one = launch_config({}, 80, 26, 1, limits);
    EXPECT_EQ(one.cluster, 4);
    EXPECT_EQ(one.gathered(), 3 * noted_starts(one.traversal, one.starts));
    EXPECT_GE(one.layout().rows, one.layout().gathered + one.gathered() * 8);
    EXPECT_GE(one.traversal.most_batch, one.gathered());
    // A search that keeps this many rows has one block.
    limits.rows = 60000;
    EXPECT_EQ(launch_config({}, 4000, 26, 1, limits).cluster, 1);
    limits.rows = 1000000;
    EXPECT_EQ(launch_config({}, 80, 26, 32, limits).cluster, 1);
    EXPECT_EQ(launch_config({}, 80, 26, 1000, limits).cluster, 1);
    limits.seeds = 200;
    EXPECT_EQ(launch_config({}, 80, 26, 1, limits).cluster, 1);
    limits.seeds = 2500;
    limits.clusters = false;
    EXPECT_EQ(launch_config({}, 80, 26, 1, limits).cluster, 1);
}

// Long searches have turns of many rows, alone and in batches; blocks share them where there are few queries.
TEST(LaunchConfigs, OfLongSearchesAreHelped)
{
    DeviceLimits limits = ground_of(227 << 10);
    limits.clusters = true;
    limits.multiprocessors = 132;
    limits.seeds = 2500;
    EXPECT_FALSE(launch_config({}, 80, 26, 1, limits).shares_scores);
    for (const std::size_t ef : {96, 192, 1000}) {
        const LaunchConfig one = launch_config({}, ef, 26, 1, limits);
        const LaunchConfig many = launch_config({}, ef, 26, 10000, limits);
        EXPECT_GT(one.traversal.steps, most_together);
        EXPECT_EQ(one.traversal.steps, many.traversal.steps);
        EXPECT_EQ(one.traversal.together(), one.traversal.most_together);
        EXPECT_TRUE(one.shares_scores);
        EXPECT_FALSE(many.shares_scores);
        EXPECT_GE(one.gathered(), one.traversal.steps * one.traversal.degree);
        EXPECT_GE(one.traversal.most_batch, one.traversal.steps * one.traversal.degree);
        EXPECT_LE(one.shared_bytes, limits.shared_bytes);
        EXPECT_GE(one.layout().rows, one.layout().task + sizeof(ClusterTask));
    }
    // Rows that are long are shared sooner, however few seeds there are.
    limits.row_bytes = 1536;
    EXPECT_TRUE(launch_config({}, 80, 26, 1, limits).shares_scores);
    limits.seeds = 100;
    EXPECT_TRUE(launch_config({}, 80, 26, 1, limits).shares_scores);
    ParameterList settings;
    settings.set("help", 1);
    EXPECT_FALSE(launch_config(settings, 192, 26, 1, limits).shares_scores);
    limits.clusters = false;
    EXPECT_FALSE(launch_config({}, 192, 26, 1, limits).shares_scores);
}

TEST(LaunchConfigs, ArraysLieApart)
{
    const LaunchConfig shape = launch_config({}, 100, 10, 1000, ground_of(227 << 10));
    const SharedLayout layout = shared_layout(shape.traversal, shape.visited_bits, 512, shape.traversal.most_batch);
    EXPECT_GE(layout.entries, layout.query + 512);
    EXPECT_GE(layout.kept, layout.entries + (2 * 100 + 1) * 8);
    EXPECT_GE(layout.gathered, layout.kept + shape.traversal.most_batch * 8);
    EXPECT_GE(layout.rows, layout.gathered + shape.traversal.most_batch * 8);
    EXPECT_GE(layout.parents, layout.rows + shape.traversal.most_batch * 4);
    EXPECT_GE(layout.again, layout.parents + shape.traversal.warps * shape.traversal.steps * 4);
    EXPECT_GE(layout.counters, layout.again + shape.traversal.again * 4);
    EXPECT_GE(layout.visited, layout.counters + queue_counters * 4);
    EXPECT_EQ(layout.end, layout.visited + visited_words(shape.visited_bits) * 4);
}

TEST(GraphForms, TakeLessMemoryWhereVectorsLieOnTheHost)
{
    GraphOptions options;
    const MirrorSize size{1000000, 8192, 128};
    ASSERT_EQ(forms_of(options).size(), 2);
    const std::uint64_t whole = device_bytes_of(options, size, Form::whole);
    EXPECT_EQ(whole - device_bytes_of(options, size, Form::ranked), size.rows * 512);
    EXPECT_GE(whole, size.rows * (512 + 256 + 128 + 8));
    options.vectors = GraphVectors::bits;
    options.bits = 256;
    EXPECT_EQ(forms_of(options).size(), 1);
    EXPECT_LT(device_bytes_of(options, size, Form::whole), size.rows * (128 + 4 + 32 + 1));
}

// Rows as bytes take the place that is reserved for halves.
TEST(GraphForms, BytesTakeNoMoreThanHalves)
{
    GraphOptions options;
    for (std::uint64_t dimensions = 32; dimensions < 4000; dimensions += 7) {
        const MirrorSize size{1000, 0, dimensions};
        const std::uint64_t neighbours = size.rows * options.degree * 4 + 1024 * 4;
        EXPECT_LE(neighbours + byte_rows_bytes(size), device_bytes_of(options, size, Form::ranked)) << dimensions;
    }
}

}  // namespace
}  // namespace pgwarp::test
