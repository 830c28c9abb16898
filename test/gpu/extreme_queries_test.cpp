// Queries at the ends of float32 beside others, in every method and form that a device has; and an index of more than
// 2^31 elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "exact_fixture.h"
#include "graph/graph.h"
#include "ivfadc/ivfadc.h"
#include "methods/tested_rows.h"
#include "methods_fixture.h"
#include "pqtree/pqtree.h"
#include "predicate_fixture.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    Method method;
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
};

class ExtremeQueries : public testing::TestWithParam<Case>
{
protected:
    static constexpr std::size_t dimensions = 24;
    static constexpr std::size_t count = 3000;

    static std::unique_ptr<Searcher> on_device(const Index& index, ThreadPool& pool)
    {
        const std::vector<ArrayShape> arrays = index.builder->arrays();
        const ParameterList options = index.builder->effective_options();
        cuda::Context& context = shared_context();
        std::unique_ptr<Searcher> made;
        switch (GetParam().method) {
            case Method::exact:
                made = cuda::make_exact_searcher(context, index.shape, arrays);
                break;
            case Method::ivfadc:
                made = cuda::ivfadc::make_searcher(index.shape, options, arrays, context);
                break;
            case Method::graph:
                made = cuda::graph::make_searcher(index.shape, options, arrays, context);
                break;
            default:
                made = cuda::pqtree::make_searcher(index.shape, options, arrays, context);
        }
        index.write_to(*made);
        made->finish_load(pool);
        return made;
    }
    static ParameterList options()
    {
        const Case& one = GetParam();
        if (one.method == Method::ivfadc)
            return make_list({{"codes", one.codes}, {"refine", one.refine}, {"lists", 40}});
        if (one.method == Method::pqtree) return make_list({{"refine", one.refine}});
        if (one.method == Method::graph) return make_list({{"vectors", one.codes}});
        return {};
    }
    static std::vector<std::vector<float>> extremes()
    {
        std::vector<std::vector<float>> all{std::vector<float>(dimensions, 0.0F)};
        for (const float size : {1e-45F, -1e-45F, 1e-30F, 1e15F, 1e19F, 1e30F, 3e38F, -3e38F}) {
            all.emplace_back(dimensions, size);
            all.emplace_back(dimensions, 0.0F);
            all.back()[7] = size;
            all.emplace_back(dimensions, size);
            for (std::size_t d = 0; d < dimensions; d += 2) all.back()[d] = -size;
        }
        return all;
    }
    static std::vector<std::vector<RowResult>> ask(const Searcher& searcher, const std::vector<float>& queries,
                                                   std::uint32_t k, ThreadPool& pool)
    {
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / dimensions;
        batch.k = k;
        batch.effort = GetParam().method == Method::ivfadc ? 8 : GetParam().method == Method::graph ? 64 : 1;
        std::vector<std::vector<RowResult>> found;
        searcher.search(batch, found, pool);
        return found;
    }
};

TEST_P(ExtremeQueries, AreAnsweredBesideOthers)
{
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(count, dimensions, 31);
    const std::vector<float> usual = random_rows(7, dimensions, 32);
    const Index index(GetParam().method, GetParam().metric, dimensions, rows, options(), pool);
    const auto searcher = on_device(index, pool);
    const auto extreme = extremes();
    for (const std::uint32_t k : {1U, 10U, 1200U}) {
        // In a batch of each size the usual ones are spread among the extreme ones.
        for (const std::size_t asked : {std::size_t{1}, std::size_t{4}, std::size_t{40}, std::size_t{400}}) {
            std::vector<float> queries;
            std::vector<float> alone;
            for (std::size_t q = 0; q < asked; ++q) {
                const std::vector<float>& odd = extreme[(q + k) % extreme.size()];
                const float* const even = usual.data() + q % 7 * dimensions;
                const bool is_odd = q % 2 == 0;
                queries.insert(queries.end(), is_odd ? odd.data() : even, (is_odd ? odd.data() : even) + dimensions);
                alone.insert(alone.end(), even, even + dimensions);
            }
            const auto found = ask(*searcher, queries, k, pool);
            const auto of_usual = ask(*searcher, alone, k, pool);
            const auto of_cpu = ask(*index.searcher, queries, k, pool);
            ASSERT_EQ(found.size(), asked);
            for (std::size_t q = 0; q < asked; ++q) {
                const std::string what = "query " + std::to_string(q) + " of " + std::to_string(asked) + ", k " +
                                         std::to_string(k) + ", first elements " +
                                         std::to_string(queries[q * dimensions]) + ", " +
                                         std::to_string(queries[q * dimensions + 7]);
                EXPECT_EQ(found[q].size(), of_cpu[q].size()) << what;
                std::set<std::uint32_t> seen;
                for (std::size_t i = 0; i < found[q].size(); ++i) {
                    ASSERT_LT(found[q][i].row, count) << what;
                    ASSERT_TRUE(seen.insert(found[q][i].row).second) << what << ", row " << found[q][i].row;
                    if (i == 0) continue;
                    ASSERT_FALSE(comes_before(found[q][i], found[q][i - 1])) << what << ", place " << i;
                }
                if (q % 2 == 0) continue;
                ASSERT_EQ(found[q].size(), of_usual[q].size()) << what;
                for (std::size_t i = 0; i < found[q].size(); ++i) {
                    ASSERT_EQ(found[q][i].row, of_usual[q][i].row) << what << ", place " << i;
                    ASSERT_EQ(found[q][i].distance, of_usual[q][i].distance) << what << ", place " << i;
                }
            }
        }
    }
}

// Searches of all rows, and among listed ones, have the values of the CPU for each row.
TEST_P(ExtremeQueries, HaveTheValuesOfTheCpu)
{
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(count, dimensions, 31);
    const Index index(GetParam().method, GetParam().metric, dimensions, rows, options(), pool);
    const auto searcher = on_device(index, pool);
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t row = 1; row < count; row += 3) numbers.push_back(row);
    for (const std::vector<float>& query : extremes()) {
        SearchBatch one;
        one.queries = query;
        one.count = 1;
        one.k = 50;
        const std::string what = "elements " + std::to_string(query[0]) + ", " + std::to_string(query[7]);
        std::vector<RowResult> found;
        std::vector<RowResult> wanted;
        searcher->search_exact(one, -HUGE_VAL, 0, found, pool);
        index.searcher->search_exact(one, -HUGE_VAL, 0, wanted, pool);
        ASSERT_EQ(found.size(), wanted.size()) << what;
        const bool of_codes =
            GetParam().refine == 0 && GetParam().method != Method::exact && GetParam().method != Method::graph;
        for (std::size_t i = 0; i < found.size() && !of_codes; ++i) {
            ASSERT_EQ(found[i].row, wanted[i].row) << what << ", place " << i;
            ASSERT_EQ(found[i].distance, wanted[i].distance) << what << ", place " << i;
        }
        if (!searcher->compares_certain_rows() || !index.searcher->compares_certain_rows()) continue;
        const std::vector<RowList> lists(1, RowList(numbers));
        std::vector<std::vector<RowResult>> among;
        searcher->search_among(one, lists, before_all, among, pool);
        std::vector<std::uint64_t> others((count + 63) / 64, ~std::uint64_t{0});
        for (const std::uint32_t row : numbers) others[row / 64] &= ~(std::uint64_t{1} << row % 64);
        one.dead = others;
        searcher->search_exact(one, -HUGE_VAL, 0, wanted, pool);
        ASSERT_EQ(among[0].size(), wanted.size()) << what;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            ASSERT_EQ(among[0][i].row, wanted[i].row) << what << ", place " << i;
            ASSERT_EQ(among[0][i].distance, wanted[i].distance) << what << ", place " << i;
        }
    }
}

// Under cosine queries have the length one.
INSTANTIATE_TEST_SUITE_P(
    Methods, ExtremeQueries,
    testing::Values(Case{Method::exact, Metric::l2, 0, 2}, Case{Method::exact, Metric::inner_product, 0, 2},
                    Case{Method::exact, Metric::l1, 0, 2}, Case{Method::ivfadc, Metric::l2, 0, 0},
                    Case{Method::ivfadc, Metric::l2, 1, 1}, Case{Method::ivfadc, Metric::inner_product, 2, 0},
                    Case{Method::ivfadc, Metric::inner_product, 0, 2}, Case{Method::graph, Metric::l2, 0, 2},
                    Case{Method::graph, Metric::l2, 1, 2}, Case{Method::graph, Metric::inner_product, 1, 2},
                    Case{Method::graph, Metric::l1, 0, 2}, Case{Method::pqtree, Metric::l2, 0, 0},
                    Case{Method::pqtree, Metric::inner_product, 0, 1}),
    [](const auto& info) { return std::to_string(info.index); });

// Elements on both sides of number 2^31, and their halves on both sides of byte 2^32.
class LargeExact : public testing::Test
{
protected:
    static constexpr std::uint32_t dimensions = 16000;
    static constexpr std::uint32_t count = 134400;

    static float element(std::uint32_t row, std::uint32_t d)
    {
        const std::uint32_t mixed = ((row * 0x9E3779B1U) ^ (d * 0x85EBCA77U + (row >> 7))) * 0xC2B2AE3DU;
        return static_cast<float>(mixed >> 8) * 0x1p-23F - 1;
    }
    static void write_row(std::uint32_t row, float* to)
    {
        for (std::uint32_t d = 0; d < dimensions; ++d) to[d] = element(row, d);
    }
};

TEST_F(LargeExact, HasRowsBeyondElementTwoToThe31)
{
    std::size_t free = 0;
    std::size_t all = 0;
    ASSERT_EQ(cudaMemGetInfo(&free, &all), cudaSuccess);
    if (free < std::size_t{24} << 30) GTEST_SKIP() << "the device has too little memory";
    ThreadPool pool(0);
    IndexShape shape{};
    shape.method = Method::exact;
    shape.metric = static_cast<std::uint8_t>(Metric::l2);
    shape.dimensions = dimensions;
    const ArrayShape array = make_array_shape("vectors", ArrayType::f32, count, dimensions);
    const auto searcher = cuda::make_exact_searcher(shared_context(), shape, {&array, 1});
    constexpr std::uint32_t piece = 2100;
    std::vector<float> rows(std::size_t{piece} * dimensions);
    for (std::uint32_t first = 0; first < count; first += piece) {
        pool.parallel_for(piece, 10, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                write_row(first + static_cast<std::uint32_t>(i), rows.data() + i * dimensions);
        });
        searcher->write("vectors", std::uint64_t{first} * dimensions * sizeof(float), std::as_bytes(std::span(rows)));
    }
    searcher->finish_load(pool);

    const std::uint32_t asked[] = {0, 134217, 134218, 134219, count - 1};
    std::vector<float> queries(std::size(asked) * dimensions);
    std::vector<std::vector<RowResult>> right(std::size(asked));
    for (std::size_t q = 0; q < std::size(asked); ++q) {
        float* const query = queries.data() + q * dimensions;
        write_row(asked[q], query);
        query[5] += 0.25F;
    }
    std::vector<double> distances(std::size(asked) * count);
    pool.parallel_for(count, 64, [&](std::size_t begin, std::size_t end) {
        std::vector<float> row(dimensions);
        for (std::size_t i = begin; i < end; ++i) {
            write_row(static_cast<std::uint32_t>(i), row.data());
            for (std::size_t q = 0; q < std::size(asked); ++q)
                distances[q * count + i] =
                    canonical_distance(Metric::l2, queries.data() + q * dimensions, row.data(), dimensions);
        }
    });
    const auto nearest = [&](std::size_t q, std::size_t k, const auto& wanted) {
        FirstRows first(k);
        for (std::uint32_t row = 0; row < count; ++row)
            if (wanted(row)) first.offer({distances[q * count + row], row});
        return first.take_sorted();
    };
    const auto same = [](const std::vector<RowResult>& found, const std::vector<RowResult>& wanted) {
        return std::ranges::equal(found, wanted, [](const RowResult& a, const RowResult& b) {
            return a.row == b.row && a.distance == b.distance;
        });
    };
    const auto every = [](std::uint32_t) { return true; };
    const auto high = [](std::uint32_t row) { return row >= 134100 && row % 3 == 0; };
    for (const std::size_t copies : {1, 14}) {
        for (const std::uint32_t k : {1U, 7U}) {
            std::vector<float> many;
            for (std::size_t i = 0; i < copies; ++i) many.insert(many.end(), queries.begin(), queries.end());
            SearchBatch batch;
            batch.queries = many;
            batch.count = copies * std::size(asked);
            batch.k = k;
            std::vector<std::vector<RowResult>> found;
            searcher->search(batch, found, pool);
            for (std::size_t q = 0; q < batch.count; ++q)
                EXPECT_TRUE(same(found[q], nearest(q % std::size(asked), k, every)))
                    << "query " << q << " of " << batch.count << ", k " << k;
        }
    }
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint64_t> codes(count);
    for (std::uint32_t row = 0; row < count; ++row) {
        codes[row] = high(row) ? 1 : 0;
        if (high(row)) numbers.push_back(row);
    }
    const Predicate predicate = Predicate().where(0, 1, 1);
    for (std::size_t q = 0; q < std::size(asked); ++q) {
        SearchBatch one;
        one.queries = std::span(queries).subspan(q * dimensions, dimensions);
        one.count = 1;
        one.k = 4;
        std::vector<std::vector<RowResult>> found;
        searcher->search(one, found, pool);
        EXPECT_TRUE(same(found[0], nearest(q, 4, every))) << "query " << q << " alone";
        std::vector<RowResult> next;
        searcher->search_exact(one, -HUGE_VAL, 0, next, pool);
        EXPECT_TRUE(same(next, nearest(q, 4, every))) << "query " << q << " by a scan";
        const std::vector<RowList> lists(1, RowList(numbers));
        searcher->search_among(one, lists, before_all, found, pool);
        EXPECT_TRUE(same(found[0], nearest(q, 4, high))) << "query " << q << " among listed rows";
        const RowFilter filter{predicate, codes.data(), 1, numbers.size(), {}};
        one.filters = {&filter, 1};
        dynamic_cast<const TestsAllRows&>(*searcher).search_passing(one, found, pool);
        EXPECT_TRUE(same(found[0], nearest(q, 4, high))) << "query " << q << " among rows that pass";
    }
}

}  // namespace
}  // namespace pgwarp::test
