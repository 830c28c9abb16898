// graph: rows as bytes, by which searches choose the rows that they compare.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "methods/graph/byte_rows.h"
#include "methods/graph/edges.h"
#include "methods_fixture.h"
#include "numeric/distance.h"

namespace pgwarp::test
{
namespace
{

TEST(GraphBytes, ScoreAsTheRowsDo)
{
    ThreadPool pool(2);
    for (const std::size_t dimensions : {32U, 100U, 128U, 700U}) {
        const std::vector<float> rows = random_rows(301, dimensions, 61);
        const std::vector<float> query = random_rows(1, dimensions, 62);
        std::vector<std::uint32_t> numbers(301);
        for (std::uint32_t i = 0; i < 301; ++i) numbers[i] = i;
        GraphEdges edges{4, {}};
        for (std::uint32_t i = 0; i < 301; ++i)
            for (std::uint32_t n = 1; n <= 4; ++n) edges.neighbours.push_back((i + n) % 301);
        const auto row_of = [&](std::uint32_t row, float* out) {
            std::copy_n(rows.data() + row * dimensions, dimensions, out);
        };
        for (const Metric metric : {Metric::l2, Metric::inner_product}) {
            ByteRows bytes;
            bytes.build(metric, dimensions, numbers, edges, row_of, pool);
            ASSERT_FALSE(bytes.empty());
            GraphByteQuery prepared;
            bytes.prepare(query.data(), prepared);
            std::vector<float> found(320);
            std::vector<float> seeds(320);
            bytes.scores(prepared, numbers, found.data());
            bytes.seed_scores(prepared, seeds.data());
            std::vector<float> exact(301);
            scores(metric, query.data(), rows.data(), 301, dimensions, exact.data());
            double squares = 0;
            double mean = 0;
            double off = 0;
            for (std::size_t i = 0; i < 301; ++i) {
                ASSERT_NEAR(found[i], seeds[i], 1e-5 * (1 + std::fabs(exact[i])));
                mean += exact[i] / 301;
                off += (exact[i] - found[i]) / 301;
            }
            double errors = 0;
            for (std::size_t i = 0; i < 301; ++i) {
                squares += std::pow(exact[i] - mean, 2);
                errors += std::pow(exact[i] - found[i] - off, 2);
            }
            EXPECT_LT(errors, 0.001 * squares) << dimensions;
        }
    }
}

TEST(GraphBytes, AreNotKeptWhereTheyTellNothing)
{
    ThreadPool pool(2);
    constexpr std::size_t dimensions = 64;
    std::vector<float> rows = random_rows(2000, dimensions, 63, 0.001F);
    // Two clusters, far apart.
    for (std::size_t i = 0; i < rows.size() / 2; ++i) rows[i] += 1000;
    const Index index(Method::graph, Metric::l2, dimensions, rows, {}, pool);
    const std::uint64_t least = 2000 * (dimensions * sizeof(float) + 32 * sizeof(std::uint32_t));
    EXPECT_LT(index.searcher->memory_bytes(), least + 2000 * dimensions);
    const std::vector<float> query(rows.begin(), rows.begin() + dimensions);
    const auto found = index.search(query, 10, pool, make_list({{"ef_search", 50}}))[0];
    EXPECT_GE(recall(found, brute_force(Metric::l2, query.data(), rows, dimensions, 10)), 0.9);
}

}  // namespace
}  // namespace pgwarp::test
