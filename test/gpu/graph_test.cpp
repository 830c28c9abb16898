// The search of a graph on the device: against the CPU's on the same arrays, against brute force in float64, and
// against itself with other launch configurations.
#include "graph_fixture.h"
#include "graph_pages.h"

#include <array>
#include <cstring>

#include "graph/form.h"
#include "methods/graph/graph.h"

namespace pgwarp::test
{
namespace
{

constexpr std::int64_t full = 0;
constexpr std::int64_t half = 1;
constexpr std::int64_t bits = 2;

struct Case {
    Metric metric;
    std::int64_t vectors;
    std::size_t dimensions;
    std::int64_t degree = 0;
};

struct Made {
    std::vector<float> rows;
    std::vector<float> queries;
    std::unique_ptr<Index> index;
    std::unique_ptr<Searcher> device;
};

class DeviceGraph : public testing::TestWithParam<Case>
{
protected:
    // Each kind is built once for all tests.
    void make(std::size_t count, std::size_t asked)
    {
        const Case given = GetParam();
        // Constructed first, so that it outlives the static fixtures below.
        shared_context();
        static std::map<std::array<std::int64_t, 5>, std::shared_ptr<Made>> all;
        auto& made = all[{static_cast<std::int64_t>(given.metric), given.vectors,
                          static_cast<std::int64_t>(given.dimensions), given.degree, static_cast<std::int64_t>(count)}];
        if (made == nullptr) {
            made = std::make_shared<Made>();
            made->rows = random_rows(count, given.dimensions, 1);
            made->queries = random_rows(500, given.dimensions, 1);
            // Queries near rows, but equal to none.
            for (float& value : made->queries) value = value * 0.98F + 0.01F;
            if (given.metric == Metric::cosine) {
                normalise_rows(made->rows, given.dimensions);
                normalise_rows(made->queries, given.dimensions);
            }
            const ParameterList options = make_list({{"vectors", given.vectors}, {"degree", given.degree}});
            made->index =
                std::make_unique<Index>(Method::graph, given.metric, given.dimensions, made->rows, options, pool);
            made->device = load_graph(*made->index, shared_context(), pool);
        }
        rows = made->rows;
        queries = made->queries;
        queries.resize(asked * given.dimensions);
        index = made->index.get();
        device = made->device.get();
    }
    std::vector<float> first(std::size_t count) const
    {
        return {queries.begin(), queries.begin() + static_cast<std::ptrdiff_t>(count * GetParam().dimensions)};
    }
    Results on_device(const std::vector<float>& asked, std::uint32_t k, const ParameterList& settings,
                      RowBitmap dead = {})
    {
        return ask(*device, asked, GetParam().dimensions, k, settings, pool, dead);
    }
    Results on_cpu(const std::vector<float>& asked, std::uint32_t k, const ParameterList& settings, RowBitmap dead = {})
    {
        return ask(*index->searcher, asked, GetParam().dimensions, k, settings, pool, dead);
    }
    // Numbers of differing bits have many ties.
    bool has_ties() const { return GetParam().vectors == bits || GetParam().dimensions < 4; }

    ThreadPool pool{0};
    std::vector<float> rows;
    std::vector<float> queries;
    const Index* index = nullptr;
    const Searcher* device = nullptr;
};

TEST_P(DeviceGraph, AgreesWithTheCpu)
{
    make(12000, 500);
    EXPECT_EQ(device->result_kind(), index->searcher->result_kind());
    EXPECT_EQ(device->values_are_distances(), index->searcher->values_are_distances());
    EXPECT_DOUBLE_EQ(device->bound_width(queries.data()), index->searcher->bound_width(queries.data()));
    for (const std::size_t batch : {1, 3, 40, 500}) {
        for (const std::int64_t ef : {100, 400}) {
            for (const std::uint32_t k : {1U, 10U, 100U}) {
                const ParameterList settings = make_list({{"ef_search", ef}});
                const Results expected = on_cpu(first(batch), k, settings);
                const Results found = on_device(first(batch), k, settings);
                const Agreement agreement = compare(expected, found);
                const std::string what =
                    "batch " + std::to_string(batch) + " ef " + std::to_string(ef) + " k " + std::to_string(k);
                for (const auto& result : found) ASSERT_EQ(result.size(), k) << what;
                EXPECT_TRUE(agreement.ordered) << what;
                EXPECT_EQ(agreement.unequal, 0U) << what;
                if (batch * k >= 1000 && !has_ties()) {
                    EXPECT_GE(agreement.share, ef > 100 ? 0.995 : 0.985) << what;
                }
            }
        }
    }
}

TEST_P(DeviceGraph, FindsTheNearest)
{
    make(12000, 200);
    if (GetParam().vectors == bits) GTEST_SKIP() << "bits rank nothing";
    const Results found = on_device(queries, 10, make_list({{"ef_search", 200}}));
    double sum = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        sum += recall(found[q], brute_force(GetParam().metric, queries.data() + q * GetParam().dimensions, rows,
                                            GetParam().dimensions, 10));
    }
    EXPECT_GE(sum / static_cast<double>(found.size()), 0.97);
}

// Every launch configuration gives the same rows with the same values.
TEST_P(DeviceGraph, FindsTheSameInEveryShape)
{
    make(12000, 300);
    for (const std::int64_t ef : {20, 130}) {
        const ParameterList plain = make_list({{"ef_search", ef}});
        const Results expected = on_device(queries, 10, plain);
        for (const std::size_t batch : {1, 2, 5, 64, 150}) {
            const Results found = on_device(first(batch), 10, plain);
            expect_same({expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(batch)}, found,
                        "batch " + std::to_string(batch));
        }
        for (const std::int64_t lanes : {8, 16, 32, 64, 128, 512}) {
            // `team` is at most `lanes`, and the order of additions depends on it: all configurations use 4.
            const ParameterList small = make_list({{"ef_search", ef}, {"lanes", lanes}, {"team", 4}});
            const ParameterList other = make_list({{"ef_search", ef}, {"lanes", 32}, {"team", 4}});
            expect_same(on_device(queries, 10, other), on_device(queries, 10, small), "lanes " + std::to_string(lanes));
        }
        for (const std::int64_t cluster : {2, 4, 8}) {
            for (const std::int64_t lanes : {32, 256}) {
                const ParameterList settings = make_list({{"ef_search", ef}, {"cluster", cluster}, {"lanes", lanes}});
                const Results found = on_device(first(20), 10, settings);
                expect_same({expected.begin(), expected.begin() + 20}, found, "cluster " + std::to_string(cluster));
            }
        }
        for (const std::int64_t steps : {4, 32}) {
            const Results many = on_device(queries, 10, make_list({{"ef_search", ef}, {"multi_step", steps}}));
            for (const std::int64_t cluster : {1, 2, 8}) {
                for (const std::int64_t help : {1, 2}) {
                    const ParameterList settings =
                        make_list({{"ef_search", ef}, {"cluster", cluster}, {"help", help}, {"multi_step", steps}});
                    expect_same({many.begin(), many.begin() + 4}, on_device(first(4), 10, settings),
                                "cluster " + std::to_string(cluster) + " help " + std::to_string(help));
                }
            }
        }
        for (const std::int64_t visited_bits : {5, 8, 13}) {
            expect_same(expected,
                        on_device(queries, 10, make_list({{"ef_search", ef}, {"visited_bits", visited_bits}})),
                        "visited bits " + std::to_string(visited_bits));
        }
        for (const std::int64_t queries_of_warp : {2, 4}) {
            const ParameterList one = make_list({{"ef_search", ef}, {"team", 4}});
            const ParameterList several = make_list({{"ef_search", ef}, {"team", 4}, {"multi_query", queries_of_warp}});
            expect_same(on_device(queries, 10, one), on_device(queries, 10, several),
                        "queries of a warp " + std::to_string(queries_of_warp));
        }
    }
}

// The options of SONG that keep the answer, and filters, whose false positives may skip rows.
TEST_P(DeviceGraph, KnowsTheOptionsOfSong)
{
    make(12000, 300);
    const Results expected = on_device(queries, 10, make_list({{"ef_search", 100}}));
    for (const char* name : {"selected_insertion", "visited_deletion", "unbounded_queue"}) {
        const ParameterList settings = make_list({{"ef_search", 100}, {name, 1}});
        expect_same(expected, on_device(queries, 10, settings), name);
    }
    for (const std::int64_t visited : {1, 2}) {
        for (const char* name : {"visited", "selected_insertion", "visited_deletion"}) {
            const ParameterList settings = make_list({{"ef_search", 100}, {name, 1}, {"visited", visited}});
            const Results found = on_device(queries, 10, settings);
            EXPECT_GE(compare(expected, found).share, 0.99) << name << " visited " << visited;
            EXPECT_TRUE(compare(expected, found).ordered) << name << " visited " << visited;
        }
    }
    for (const std::int64_t steps : {1, 2, 4, 8, 16}) {
        const ParameterList settings = make_list({{"ef_search", 100}, {"multi_step", steps}});
        EXPECT_GE(compare(expected, on_device(queries, 10, settings)).share, 0.98) << "steps " << steps;
    }
}

TEST_P(DeviceGraph, LeavesDeadRowsOut)
{
    make(6000, 300);
    std::vector<std::uint64_t> dead((6000 + 63) / 64, 0x5555aaaa0f0f3333ULL);
    for (const std::size_t batch : {3, 300}) {
        const ParameterList settings = make_list({{"ef_search", 300}});
        const Results expected = on_cpu(first(batch), 10, settings, dead);
        const Results found = on_device(first(batch), 10, settings, dead);
        for (const auto& result : found) {
            ASSERT_EQ(result.size(), 10U);
            for (const RowResult& one : result) ASSERT_FALSE(bit_is_set(dead, one.row));
        }
        if (!has_ties()) {
            EXPECT_GE(compare(expected, found).share, 0.985);
        }
    }
    // Three rows are alive: all of them are found for every ef.
    std::fill(dead.begin(), dead.end(), ~std::uint64_t{0});
    for (const std::size_t row : {5, 700, 5999}) dead[row / 64] &= ~(std::uint64_t{1} << (row % 64));
    EXPECT_EQ(on_device(first(1), 10, make_list({{"ef_search", 10}}), dead)[0].size(), 3U);
    // A shorter bitmap: rows beyond its end are alive.
    const std::vector<std::uint64_t> some(10, ~std::uint64_t{0});
    const Results others = on_device(first(1), 10, make_list({{"ef_search", 50}}), some);
    for (const RowResult& one : others[0]) EXPECT_GE(one.row, 640U);
}

TEST_P(DeviceGraph, AnswersManyNeighbours)
{
    make(9000, 5);
    for (const std::uint32_t k : {700U, 4096U, 9000U, 65536U}) {
        const Results expected = on_cpu(queries, k, {});
        const Results found = on_device(queries, k, {});
        const Agreement agreement = compare(expected, found);
        ASSERT_EQ(found[0].size(), std::min<std::size_t>(k, 9000));
        EXPECT_TRUE(agreement.ordered);
        EXPECT_EQ(agreement.unequal, 0U);
        if (!has_ties()) {
            EXPECT_GE(agreement.share, 0.98) << k;
        }
    }
}

TEST_P(DeviceGraph, ContinuesAfterACursor)
{
    make(3000, 1);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = 1;
    double distance = -HUGE_VAL;
    std::uint32_t row = 0;
    const std::vector<std::uint64_t> dead((3000 + 63) / 64, 0x00f0000000000101ULL);
    for (int page = 0; page < 5; ++page) {
        std::vector<RowResult> expected;
        std::vector<RowResult> found;
        // The fourth page is more than the device sorts.
        batch.k = page == 3 ? 2500 : 50;
        batch.dead = page > 1 ? RowBitmap(dead) : RowBitmap();
        index->searcher->search_exact(batch, distance, row, expected, pool);
        device->search_exact(batch, distance, row, found, pool);
        expect_same({expected}, {found}, "page " + std::to_string(page));
        if (found.empty()) break;
        distance = found.back().distance;
        row = found.back().row;
    }
}

// The shared memory of other devices: 64 KB on sm_75, 99 KB on sm_86.
TEST_P(DeviceGraph, FitsSmallerDevices)
{
    make(12000, 300);
    const ParameterList settings = make_list({{"ef_search", 200}});
    const Results expected = on_device(queries, 10, settings);
    for (const std::size_t kilobytes : {64, 99}) {
        shared_context().limit_shared_bytes(kilobytes << 10);
        const Results found = on_device(queries, 10, settings);
        shared_context().limit_shared_bytes(SIZE_MAX);
        expect_same(expected, found, std::to_string(kilobytes) + " KB");
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceGraph,
                         testing::Values(Case{Metric::l2, full, 128}, Case{Metric::l2, half, 128},
                                         Case{Metric::l2, full, 3}, Case{Metric::l2, half, 127},
                                         Case{Metric::l2, full, 784, 64}, Case{Metric::inner_product, full, 40},
                                         Case{Metric::inner_product, half, 33}, Case{Metric::cosine, full, 100},
                                         Case{Metric::cosine, half, 64, 16}, Case{Metric::l1, full, 50},
                                         Case{Metric::l1, half, 24}, Case{Metric::l2, bits, 64},
                                         Case{Metric::cosine, bits, 100}));

// With the vectors on the host the answers are the same.
TEST(DeviceGraphForms, FindTheSame)
{
    constexpr std::size_t dimensions = 96;
    constexpr std::size_t count = 60000;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(count, dimensions, 3);
    std::vector<float> queries = random_rows(200, dimensions, 4);
    const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"degree", 16}}), pool);
    const auto whole = load_graph(index, shared_context(), pool);
    EXPECT_FALSE(whole->residence().split);
    const GraphOptions options = GraphOptions::resolve(index.builder->effective_options(), dimensions);
    using cuda::graph::Form;
    const cuda::graph::MirrorSize size{count, seed_count(count), dimensions};
    const std::uint64_t better = cuda::graph::device_bytes_of(options, size, Form::whole);
    const std::uint64_t budget = std::min(
        cuda::graph::device_bytes_of(options, size, Form::ranked) * 8 / 7 + (std::uint64_t{8} << 20), better - 1);
    cuda::Context small(0, budget);
    const auto ranked = load_graph(index, small, pool);
    EXPECT_TRUE(ranked->residence().split);
    for (const std::uint32_t k : {1U, 10U, 100U}) {
        const ParameterList settings = make_list({{"ef_search", 100}});
        expect_same(ask(*whole, queries, dimensions, k, settings, pool),
                    ask(*ranked, queries, dimensions, k, settings, pool), "k " + std::to_string(k));
    }
    EXPECT_THROW(load_graph(index, *std::make_unique<cuda::Context>(0, std::uint64_t{4} << 20), pool), std::bad_alloc);
}

// Rows that merges added, and edges to them, reach the device.
TEST(DeviceGraphGrowth, AgreesWithTheCpu)
{
    ThreadPool pool(0);
    constexpr std::size_t dimensions = 24;
    const std::vector<float> rows = random_rows(8500, dimensions, 1);
    const auto part = [&](std::size_t begin, std::size_t end) {
        return std::vector<float>(rows.begin() + static_cast<std::ptrdiff_t>(begin * dimensions),
                                  rows.begin() + static_cast<std::ptrdiff_t>(end * dimensions));
    };
    for (const std::int64_t vectors : {full, half, bits}) {
        Pages pages(
            Index(Method::graph, Metric::l2, dimensions, part(0, 8000), make_list({{"vectors", vectors}}), pool));
        pages.grow(part(8000, 8200), pool);
        pages.grow(part(8200, 8500), pool);
        ASSERT_NE(pages.find(array_edge_changes), nullptr);
        const auto cpu = pages.load(pool);
        const auto device = pages.load(
            cuda::graph::make_searcher(pages.shape(), pages.options(), pages.shapes(), shared_context()), pool);
        // Queries near added rows.
        std::vector<float> queries = part(8000, 8500);
        for (float& value : queries) value = value * 0.99F + 0.01F;
        const ParameterList settings = make_list({{"ef_search", 400}});
        const Agreement agreement = compare(ask(*cpu, queries, dimensions, 10, settings, pool),
                                            ask(*device, queries, dimensions, 10, settings, pool));
        EXPECT_TRUE(agreement.ordered);
        EXPECT_EQ(agreement.unequal, 0U);
        if (vectors != bits) {
            EXPECT_GE(agreement.share, 0.995);
        }
    }
}

TEST(DeviceGraphInput, RefusesWhatIsNoGraph)
{
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(500, 8, 5);
    const Index index(Method::graph, Metric::l2, 8, rows, {}, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    for (const char* wrong : {"seeds", "neighbours"}) {
        auto searcher =
            cuda::graph::make_searcher(index.shape, index.builder->effective_options(), arrays, shared_context());
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes = index.contents(array);
            const std::uint32_t row = 500;
            if (std::string(array.name) == wrong) std::memcpy(bytes.data() + 8, &row, sizeof(row));
            searcher->write(array.name, 0, bytes);
        }
        EXPECT_THROW(searcher->finish_load(pool), BadRequest) << wrong;
    }
    const Index empty(Method::graph, Metric::l2, 8, {}, {}, pool);
    const auto searcher = load_graph(empty, shared_context(), pool);
    EXPECT_TRUE(ask(*searcher, rows, 8, 3, {}, pool)[0].empty());
}

}  // namespace
}  // namespace pgwarp::test
