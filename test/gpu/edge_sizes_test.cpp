// Indexes of one or two rows, of one dimension and of the most there may be; more rows asked for than there are; all
// rows dead: every method in every form that a device has, in small and large batches, against brute force.
#include <gtest/gtest.h>

#include <string>

#include "device/context.h"
#include "exact_fixture.h"
#include "graph/graph.h"
#include "ivfadc/ivfadc.h"
#include "methods_fixture.h"
#include "pqtree/pqtree.h"

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

class EdgeSizes : public testing::TestWithParam<Case>
{
};

std::unique_ptr<Searcher> searcher_of(const Index& index, const Case& given, cuda::Context& context, ThreadPool& pool)
{
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const ParameterList options = index.builder->effective_options();
    std::unique_ptr<Searcher> made;
    if (given.method == Method::exact) made = cuda::make_exact_searcher(context, index.shape, arrays);
    if (given.method == Method::ivfadc) made = cuda::ivfadc::make_searcher(index.shape, options, arrays, context);
    if (given.method == Method::graph) made = cuda::graph::make_searcher(index.shape, options, arrays, context);
    if (given.method == Method::pqtree) made = cuda::pqtree::make_searcher(index.shape, options, arrays, context);
    for (const ArrayShape& array : arrays) made->write(array.name, 0, index.contents(array));
    made->finish_load(pool);
    return made;
}

TEST_P(EdgeSizes, AreAnswered)
{
    const Case given = GetParam();
    ThreadPool pool(2);
    cuda::Context& context = shared_context();
    for (const std::size_t dimensions : {std::size_t{1}, std::size_t{16000}}) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{40}}) {
            std::vector<float> rows = random_rows(count, dimensions, 11);
            std::vector<float> queries = random_rows(70, dimensions, 12);
            if (given.metric == Metric::cosine) {
                normalise_rows(rows, dimensions);
                normalise_rows(queries, dimensions);
            }
            ParameterList options;
            if (given.method == Method::ivfadc) {
                options = make_list({{"codes", given.codes}, {"refine", given.refine}, {"lists", 7}});
            }
            if (given.method == Method::pqtree) {
                options = make_list({{"refine", given.refine}, {"line_parts", dimensions > 1 ? 16 : 1}});
            }
            const Index index(given.method, given.metric, dimensions, rows, options, pool);
            // A tree and its lines take more than 64 KB.
            const std::size_t small = given.method == Method::pqtree ? 99 : 64;
            for (const std::size_t kilobytes : {std::size_t{1000}, small}) {
                context.limit_shared_bytes(kilobytes << 10);
                const auto searcher = searcher_of(index, given, context, pool);
                for (const std::size_t asked : {std::size_t{1}, std::size_t{5}, std::size_t{70}}) {
                    for (const std::uint32_t k : {1U, 3U, 1000U}) {
                        for (const bool gone : {false, true}) {
                            const std::vector<std::uint64_t> dead(gone ? 1 : 0, ~std::uint64_t{0});
                            SearchBatch batch;
                            batch.queries = std::span(queries).first(asked * dimensions);
                            batch.count = asked;
                            batch.k = k;
                            batch.dead = dead;
                            // Else all rows are compared, without the tree.
                            if (given.method == Method::pqtree) batch.effort = 1;
                            std::vector<std::vector<RowResult>> found;
                            searcher->search(batch, found, pool);
                            const std::string what = std::to_string(dimensions) + " dimensions, " +
                                                     std::to_string(count) + " rows, " + std::to_string(asked) +
                                                     " queries, k " + std::to_string(k) + ", " +
                                                     std::to_string(kilobytes) + " KB";
                            ASSERT_EQ(found.size(), asked) << what;
                            for (std::size_t q = 0; q < asked; ++q) {
                                ASSERT_EQ(found[q].size(), gone ? 0 : std::min<std::size_t>(k, count)) << what;
                            }
                            std::vector<RowResult> next;
                            searcher->search_exact(batch, -INFINITY, 0, next, pool);
                            ASSERT_EQ(next.size(), gone ? 0 : std::min<std::size_t>(k, count)) << what;
                            if (gone || given.codes == 0 || given.refine == 0) continue;
                            const auto truth = brute_force(given.metric, queries.data(), rows, dimensions, k);
                            EXPECT_EQ(ids(next), ids(truth)) << what;
                        }
                    }
                }
                context.limit_shared_bytes(SIZE_MAX);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, EdgeSizes,
                         testing::Values(Case{Method::exact, Metric::l2, 1, 2}, Case{Method::exact, Metric::l1, 1, 2},
                                         Case{Method::exact, Metric::cosine, 1, 2},
                                         Case{Method::ivfadc, Metric::l2, 0, 0}, Case{Method::ivfadc, Metric::l2, 1, 1},
                                         Case{Method::ivfadc, Metric::inner_product, 2, 0},
                                         Case{Method::ivfadc, Metric::cosine, 2, 2},
                                         Case{Method::graph, Metric::l2, 1, 2}, Case{Method::pqtree, Metric::l2, 0, 0},
                                         Case{Method::pqtree, Metric::cosine, 1, 2},
                                         Case{Method::pqtree, Metric::inner_product, 0, 1}),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace pgwarp::test
