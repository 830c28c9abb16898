// Calibrated recall where clusters hold fewer rows than k: farther neighbours lie in other clusters, and recall falls
// where a search does not reach those clusters.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "methods_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::test
{
namespace
{

constexpr std::size_t dimensions = 32;
constexpr std::size_t clusters = 100;
constexpr std::size_t row_count = 20000;  // 200 a cluster
constexpr std::size_t query_count = 200;
constexpr std::uint32_t deepest = 1000;

// The rows, then the queries. Clusters lie several times as far apart as they are wide.
std::vector<float> clustered_rows()
{
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    std::vector<float> centres(clusters * dimensions);
    for (float& value : centres) value = 6 * normal(random);
    std::vector<float> rows((row_count + query_count) * dimensions);
    for (std::size_t i = 0; i < rows.size() / dimensions; ++i) {
        for (std::size_t d = 0; d < dimensions; ++d)
            rows[i * dimensions + d] = centres[i % clusters * dimensions + d] + normal(random);
    }
    return rows;
}

struct Kept {
    Method method;
    std::int64_t vectors;  // of graph
    std::int64_t codes;    // of ivfadc
    std::int64_t refine;
};

class SmallClusters : public testing::TestWithParam<Kept>
{
};

TEST_P(SmallClusters, PromisesAreKept)
{
    const auto [method, vectors, codes, refine] = GetParam();
    const ParameterList options =
        method == Method::graph ? make_list({{"vectors", vectors}}) : make_list({{"codes", codes}, {"refine", refine}});
    ThreadPool pool(2);
    const std::vector<float> all = clustered_rows();
    const std::vector<float> rows(all.begin(), all.begin() + row_count * dimensions);
    const std::vector<float> queries(all.begin() + row_count * dimensions, all.end());
    const Index exact(Method::exact, Metric::l2, dimensions, rows, {}, pool);
    const Index index(method, Metric::l2, dimensions, rows, options, pool);
    const auto nearest = exact.search(queries, deepest, pool);
    for (const std::uint32_t k : {10, 100, 101, 150, 250, 400, 600, 1000}) {
        for (const double wanted : {0.9, 0.95, 0.99}) {
            const EffortChoice choice = choose_effort(index.builder->calibration(), k, wanted);
            const double promised = std::min<double>(wanted, choice.attained);
            const auto found =
                index.search(queries, search_width({index.searcher->result_kind()}, k), pool, {}, {}, choice.effort);
            double total = 0;
            double squares = 0;
            for (std::size_t q = 0; q < query_count; ++q) {
                const double share = recall(found[q], {nearest[q].begin(), nearest[q].begin() + k});
                total += share / query_count;
                squares += share * share / query_count;
            }
            const double error = std::sqrt(std::max(0.0, squares - total * total) / query_count);
            EXPECT_GE(total, promised - 0.01 - error)
                << "k " << k << ", asked " << wanted << ", effort " << choice.effort;
            // A higher target gives a higher recall by more effort.
            EXPECT_TRUE(choice.reached || method != Method::graph || vectors == 2) << "k " << k << ", " << wanted;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Calibration, SmallClusters,
                         testing::Values(Kept{Method::graph, 0, 0, 0}, Kept{Method::graph, 1, 0, 0},
                                         Kept{Method::graph, 2, 0, 0}, Kept{Method::ivfadc, 0, 0, 0},
                                         Kept{Method::ivfadc, 0, 0, 1}, Kept{Method::ivfadc, 0, 0, 2},
                                         Kept{Method::ivfadc, 0, 2, 0}));

}  // namespace
}  // namespace pgwarp::test
