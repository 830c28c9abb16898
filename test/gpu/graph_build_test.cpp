// The graph build on the device: each step against the CPU's, and the recall of the graph.
#include <cstring>
#include <numeric>
#include <random>

#include "device/error.h"
#include "graph/edges.h"
#include "graph/grouped.h"
#include "graph/nearest.h"
#include "graph_fixture.h"
#include "graph_reference.h"
#include "methods/arrays.h"
#include "methods/graph/edges.h"
#include "methods/graph/graph.h"
#include "methods/graph/nearest_rows.h"
#include "passes/exact_search.h"

namespace pgwarp::test
{
namespace
{

const BuildProgress quiet{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};

template <class T>
cuda::DeviceArray<T> copy_in(std::span<const T> values, const cuda::Context::Lease& stream)
{
    cuda::DeviceArray<T> copy(shared_context().pool(), values.size(), "test", stream);
    cuda::check(cudaMemcpy(copy.data(), values.data(), copy.bytes(), cudaMemcpyHostToDevice), "test");
    return copy;
}

template <class T>
std::vector<T> copy_out(const cuda::DeviceArray<T>& values)
{
    std::vector<T> copy(values.size());
    cuda::check(cudaMemcpy(copy.data(), values.data(), values.bytes(), cudaMemcpyDeviceToHost), "test");
    return copy;
}

std::vector<std::uint32_t> all_rows(std::uint32_t count)
{
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
}

TEST(DeviceGraphBuild, DrawsTheEdgesOfTheCpu)
{
    ThreadPool pool(0);
    const auto stream = shared_context().lease(cuda::Priority::build);
    for (const auto& [rows, width, degree] :
         {std::array{20000U, 64U, 32U}, std::array{5000U, 40U, 7U}, std::array{3000U, 256U, 64U},
          std::array{300U, 9U, 4U}, std::array{2000U, 64U, 64U}, std::array{1U, 4U, 4U}}) {
        const NearestRows nearest = circle_lists(rows, width, rows);
        const GraphEdges expected = draw_edges(nearest, degree, all_rows(rows), quiet, pool);
        const auto lists = copy_in(std::span<const std::uint32_t>(nearest.rows), stream);
        cuda::DeviceArray<std::uint32_t> out(shared_context().pool(), std::size_t{rows} * degree, "test", stream);
        cuda::graph::draw_edges(shared_context(), lists.data(), rows, width, degree, out.data(), stream);
        const std::vector<std::uint32_t> found = copy_out(out);
        EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.neighbours.begin()))
            << rows << " rows, width " << width << ", degree " << degree;
    }
}

TEST(DeviceGraphBuild, ReachesWhatCanBeReached)
{
    ThreadPool pool(0);
    const auto stream = shared_context().lease(cuda::Priority::build);
    const NearestRows nearest = circle_lists(30000, 12, 9);
    const GraphEdges edges = draw_edges(nearest, 6, all_rows(30000), quiet, pool);
    const auto neighbours = copy_in(std::span<const std::uint32_t>(edges.neighbours), stream);
    const auto reach = [&] {
        const std::vector<std::uint32_t> from{17};
        return cuda::graph::reach_rows(shared_context(), neighbours.data(), 30000, 6, from, stream);
    };
    const std::vector<std::uint32_t> parents = reach();
    EXPECT_EQ(parents[17], root_row);
    std::size_t reached = 0;
    for (std::uint32_t row = 0; row < 30000; ++row) {
        if (parents[row] == unreached_row) continue;
        ++reached;
        if (row == 17) continue;
        const auto from = edges.of(parents[row]);
        EXPECT_NE(std::find(from.begin(), from.end(), row), from.end());
        EXPECT_NE(parents[parents[row]], unreached_row);
    }
    EXPECT_EQ(reached, count_reachable(edges, 17));
    EXPECT_EQ(parents, reach());
}

TEST(DeviceGraphBuild, FindsTheNearestRows)
{
    constexpr std::uint32_t count = 20000;
    constexpr std::uint32_t width = 48;
    ThreadPool pool(0);
    const auto stream = shared_context().lease(cuda::Priority::build);
    for (const Metric metric : {Metric::l2, Metric::l1}) {
        constexpr std::size_t dimensions = 40;
        const std::vector<float> rows = random_rows(count, dimensions, 21);
        const GraphSpace space(metric, rows, dimensions, pool);
        std::vector<std::uint64_t> left_out((count + 63) / 64, 0x0000010000000000ULL);
        const NearestRows expected = exact_nearest_rows(space, width, left_out, pool);
        const auto vectors = copy_in(std::span<const float>(rows), stream);
        const auto dead = copy_in(std::span<const std::uint64_t>(left_out), stream);
        const cuda::ExactRows exact =
            cuda::make_exact_rows(shared_context().pool(), space.metric(), vectors.data(), count, dimensions, stream);
        cuda::DeviceArray<std::uint32_t> out(shared_context().pool(), count * width, "test", stream);
        cuda::graph::NearestJob job;
        job.rows = &exact;
        job.left_out = dead.data();
        job.width = width;
        job.out = out.data();
        cuda::graph::nearest_rows(shared_context(), job, stream);
        const std::vector<std::uint32_t> found = copy_out(out);
        std::size_t same = 0;
        std::size_t all = 0;
        for (std::uint32_t row = 0; row < count; ++row) {
            const std::set<std::uint32_t> wanted(expected.of(row), expected.of(row) + width);
            std::set<std::uint32_t> seen;
            for (std::uint32_t i = 0; i < width; ++i) {
                const std::uint32_t near = found[row * width + i];
                if (bit_is_set(left_out, row)) {
                    EXPECT_EQ(near, no_neighbour);
                    continue;
                }
                ++all;
                same += wanted.count(near);
                EXPECT_NE(near, row);
                EXPECT_TRUE(near != no_neighbour && seen.insert(near).second);
                EXPECT_FALSE(near != no_neighbour && bit_is_set(left_out, near));
            }
        }
        EXPECT_GE(static_cast<double>(same) / static_cast<double>(all), 0.995);
    }
}

// With three groups each row is in all of them, so all pairs of rows are compared; with more groups recall falls
// little.
TEST(DeviceGraphBuild, FindsTheNearestRowsByGroups)
{
    constexpr std::uint32_t count = 60000;
    constexpr std::uint32_t width = 40;
    constexpr std::size_t dimensions = 24;
    ThreadPool pool(0);
    const auto stream = shared_context().lease(cuda::Priority::build);
    const std::vector<float> rows = random_rows(count, dimensions, 22);
    const auto vectors = copy_in(std::span<const float>(rows), stream);
    std::vector<std::uint64_t> left_out((count + 63) / 64, 0x0000010000000000ULL);
    const auto dead = copy_in(std::span<const std::uint64_t>(left_out), stream);
    const cuda::ExactRows exact =
        cuda::make_exact_rows(shared_context().pool(), Metric::l2, vectors.data(), count, dimensions, stream);
    cuda::DeviceArray<std::uint32_t> out(shared_context().pool(), count * width, "test", stream);
    cuda::graph::NearestJob all;
    all.rows = &exact;
    all.left_out = dead.data();
    all.width = width;
    all.out = out.data();
    cuda::graph::nearest_rows(shared_context(), all, stream);
    const std::vector<std::uint32_t> expected = copy_out(out);
    for (const std::uint32_t groups : {3U, 6U}) {
        cuda::graph::GroupedJob job;
        job.vectors = vectors.data();
        job.rows = count;
        job.dimensions = dimensions;
        job.left_out = left_out;
        job.groups = groups;
        job.width = width;
        job.out = out.data();
        cuda::graph::grouped_nearest_rows(shared_context(), job, stream);
        const std::vector<std::uint32_t> found = copy_out(out);
        std::size_t same = 0;
        std::size_t all_of = 0;
        for (std::uint32_t row = 0; row < count; ++row) {
            const std::set<std::uint32_t> wanted(expected.begin() + row * width, expected.begin() + (row + 1) * width);
            std::set<std::uint32_t> seen;
            for (std::uint32_t i = 0; i < width; ++i) {
                const std::uint32_t near = found[row * width + i];
                if (bit_is_set(left_out, row)) {
                    EXPECT_EQ(near, no_neighbour);
                    continue;
                }
                ++all_of;
                same += wanted.count(near);
                EXPECT_NE(near, row);
                EXPECT_TRUE(near == no_neighbour || seen.insert(near).second);
            }
        }
        EXPECT_GE(static_cast<double>(same) / static_cast<double>(all_of), groups == 3 ? 0.995 : 0.9);
    }
}

struct BuiltGraph {
    std::unique_ptr<Builder> builder;
    IndexShape shape{};
    std::map<std::string, std::vector<std::byte>> contents;
};

BuiltGraph build(Metric metric, const std::vector<float>& vectors, std::size_t dimensions, const ParameterList& options,
                 ThreadPool& pool)
{
    BuiltGraph built;
    built.shape.method = Method::graph;
    built.shape.element = ElementType::float32;
    built.shape.metric = static_cast<std::uint8_t>(metric);
    built.shape.dimensions = static_cast<std::uint32_t>(dimensions);
    built.builder = cuda::graph::make_builder(shared_context(), built.shape, options);
    RowBuffer rows(dimensions);
    std::vector<Tid> tids(vectors.size() / dimensions);
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    rows.append(tids, vectors);
    rows.sort_by_tid();
    built.builder->run(rows, quiet, pool);
    for (const ArrayShape& array : built.builder->arrays()) {
        std::vector<std::byte>& bytes = built.contents[array.name];
        bytes.resize(array.bytes());
        if (!bytes.empty()) built.builder->read(array.name, 0, bytes);
    }
    return built;
}

class DeviceGraphBuilds : public testing::TestWithParam<Metric>
{
};

TEST_P(DeviceGraphBuilds, AreSoundAndTheSameAgain)
{
    constexpr std::size_t count = 20000;
    constexpr std::size_t dimensions = 48;
    ThreadPool pool(0);
    std::vector<float> rows = random_rows(count, dimensions, 31);
    std::vector<float> queries = random_rows(200, dimensions, 31);
    for (float& value : queries) value = value * 0.98F + 0.01F;
    if (GetParam() == Metric::cosine) {
        normalise_rows(rows, dimensions);
        normalise_rows(queries, dimensions);
    }
    const BuiltGraph built = build(GetParam(), rows, dimensions, {}, pool);
    const BuiltGraph again = build(GetParam(), rows, dimensions, {}, pool);
    EXPECT_EQ(built.contents, again.contents);

    GraphEdges edges;
    edges.degree = static_cast<std::size_t>(built.builder->effective_options().get("degree", 0));
    edges.neighbours.resize(count * edges.degree);
    std::memcpy(edges.neighbours.data(), built.contents.at("neighbours").data(), count * edges.degree * 4);
    std::uint32_t seed = 0;
    std::memcpy(&seed, built.contents.at("seeds").data(), sizeof(seed));
    EXPECT_EQ(count_reachable(edges, seed), count);
    for (std::uint32_t row = 0; row < count; ++row) {
        std::set<std::uint32_t> seen;
        for (const std::uint32_t to : edges.of(row)) {
            if (to == no_neighbour) continue;
            EXPECT_LT(to, count);
            EXPECT_NE(to, row);
            EXPECT_TRUE(seen.insert(to).second);
        }
    }
    EXPECT_GT(built.builder->calibration().count, 0U);

    const auto searcher = cuda::graph::make_searcher(built.shape, built.builder->effective_options(),
                                                     built.builder->arrays(), shared_context());
    for (const ArrayShape& array : built.builder->arrays()) {
        searcher->write(array.name, 0, built.contents.at(array.name));
    }
    searcher->finish_load(pool);
    const Results found = ask(*searcher, queries, dimensions, 10, make_list({{"ef_search", 100}}), pool);
    double sum = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        sum += recall(found[q], brute_force(GetParam(), queries.data() + q * dimensions, rows, dimensions, 10));
    }
    EXPECT_GE(sum / static_cast<double>(found.size()), 0.97);
}

INSTANTIATE_TEST_SUITE_P(Metrics, DeviceGraphBuilds,
                         testing::Values(Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1));

// Small cases of every step, for checkers that slow kernels down.
TEST(DeviceGraphSmall, RunsEveryKernel)
{
    constexpr std::size_t dimensions = 20;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(8500, dimensions, 41);
    const std::vector<float> queries = random_rows(4, dimensions, 42);
    for (const std::int64_t vectors : {0, 1, 2}) {
        const BuiltGraph built = build(Metric::l2, rows, dimensions,
                                       make_list({{"degree", 8}, {"build_degree", 16}, {"vectors", vectors}}), pool);
        const auto searcher = cuda::graph::make_searcher(built.shape, built.builder->effective_options(),
                                                         built.builder->arrays(), shared_context());
        for (const ArrayShape& array : built.builder->arrays()) {
            searcher->write(array.name, 0, built.contents.at(array.name));
        }
        searcher->finish_load(pool);
        const std::vector<std::uint64_t> dead((8500 + 63) / 64, 0x0f0f0f0f00000000ULL);
        for (const ParameterList& settings :
             {make_list({{"ef_search", 20}}), make_list({{"ef_search", 20}, {"lanes", 32}}),
              make_list({{"ef_search", 20}, {"cluster", 2}}),
              make_list({{"ef_search", 20}, {"cluster", 4}, {"help", 2}}),
              make_list({{"ef_search", 20}, {"multi_query", 2}}), make_list({{"ef_search", 20}, {"visited", 1}}),
              make_list({{"ef_search", 20}, {"visited", 2}, {"visited_deletion", 1}}),
              make_list({{"ef_search", 20}, {"visited_deletion", 1}})}) {
            for (const auto& result : ask(*searcher, queries, dimensions, 5, settings, pool, dead)) {
                EXPECT_EQ(result.size(), 5U);
            }
        }
        SearchBatch batch;
        batch.queries = queries;
        batch.count = 1;
        batch.k = 10;
        std::vector<RowResult> found;
        searcher->search_exact(batch, -HUGE_VAL, 0, found, pool);
        EXPECT_EQ(found.size(), 10U);
    }
}

// Most rows are equal: all rows must be reachable.
TEST(DeviceGraphBuild, TakesEqualRows)
{
    constexpr std::size_t count = 12000;
    ThreadPool pool(0);
    std::vector<float> rows(count * 16, 1.0F);
    for (std::size_t i = 0; i < 500; ++i) rows[i * 16] = static_cast<float>(i);
    const BuiltGraph built = build(Metric::l2, rows, 16, {}, pool);
    GraphEdges edges;
    edges.degree = static_cast<std::size_t>(built.builder->effective_options().get("degree", 0));
    edges.neighbours.resize(count * edges.degree);
    std::memcpy(edges.neighbours.data(), built.contents.at("neighbours").data(), count * edges.degree * 4);
    std::uint32_t seed = 0;
    std::memcpy(&seed, built.contents.at("seeds").data(), sizeof(seed));
    EXPECT_EQ(count_reachable(edges, seed), count);
}

}  // namespace
}  // namespace pgwarp::test
