// The exact method on the CPU against brute force in float64: every form of rows, ties, dead rows, continuations.
#include <gtest/gtest.h>

#include <cmath>

#include "methods/bounds.h"
#include "methods_fixture.h"
#include "vector_index_checks.h"

namespace pgwarp::test::exact_test
{
namespace
{

ParameterList vectors_option(bool half)
{
    ParameterList options;
    options.set("vectors", half ? 1 : 0);
    return options;
}

struct Case {
    Metric metric;
    bool half;
    std::size_t dimensions;
};

class ExactAnswers : public testing::TestWithParam<Case>
{
};

TEST_P(ExactAnswers, EqualBruteForceForEveryBatchWidth)
{
    const auto [metric, half, dimensions] = GetParam();
    ThreadPool pool(3);
    std::vector<float> rows = random_rows(20000, dimensions, 1);
    std::vector<float> queries = random_rows(24, dimensions, 2);
    if (metric == Metric::cosine) {
        normalise_rows(rows, dimensions);
        normalise_rows(queries, dimensions);
    }
    const Index index(Method::exact, metric, dimensions, rows, vectors_option(half), pool);
    const auto together = index.search(queries, 10, pool);
    for (std::size_t q = 0; q < 24; ++q) {
        const float* query = queries.data() + q * dimensions;
        const auto expected = brute_force(metric, query, rows, dimensions, 10);
        const auto alone = index.search({query, query + dimensions}, 10, pool)[0];
        ASSERT_EQ(ids(together[q]), ids(expected)) << q;
        ASSERT_EQ(ids(alone), ids(expected)) << q;
        for (std::size_t i = 0; i < 10; ++i) {
            ASSERT_EQ(alone[i].distance, together[q][i].distance);
            if (metric == Metric::cosine) {
                ASSERT_LE(alone[i].distance, expected[i].distance);
                ASSERT_NEAR(alone[i].distance, expected[i].distance, 1e-6);
            } else {
                ASSERT_EQ(alone[i].distance, expected[i].distance);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Metrics, ExactAnswers,
                         testing::Values(Case{Metric::l2, false, 32}, Case{Metric::l2, true, 32},
                                         Case{Metric::inner_product, false, 32}, Case{Metric::inner_product, true, 32},
                                         Case{Metric::cosine, false, 32}, Case{Metric::cosine, true, 32},
                                         Case{Metric::l1, false, 32}, Case{Metric::l1, true, 32},
                                         Case{Metric::l2, false, 1}, Case{Metric::l2, true, 3}));

// Rows of halves are stored unchanged: for cosine of any length, subnormal ones among them.
TEST(Exact, RowsInHalves)
{
    ThreadPool pool(3);
    for (const std::size_t dimensions : {1, 7, 32, 300}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
            std::vector<float> rows = random_rows(3000, dimensions, 1);
            const std::size_t count = rows.size() / dimensions;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const float scale = std::ldexp(1.0F, static_cast<int>(i / dimensions % 30) - 23);
                rows[i] = float_of_half(half_of_float(metric == Metric::cosine ? rows[i] * scale : rows[i]));
            }
            // No zero vectors: they have no cosine distance.
            for (std::size_t i = 0; i < count; ++i) rows[i * dimensions] += rows[i * dimensions] == 0 ? 0x1p-24F : 0.0F;
            std::vector<float> queries = random_rows(20, dimensions, 2);
            std::vector<float> units = rows;
            if (metric == Metric::cosine) normalise_rows(queries, dimensions);
            if (metric == Metric::cosine) normalise_rows(units, dimensions);
            const Index index(Method::exact, metric, dimensions, rows, vectors_option(dimensions == 7), pool,
                              ElementType::float16);
            ASSERT_EQ(index.builder->arrays()[0].type, ArrayType::f16);
            EXPECT_LT(index.searcher->memory_bytes(), rows.size() * 2 + count * 8 + 1);
            const auto together = index.search(queries, 10, pool);
            for (std::size_t q = 0; q < 20; ++q) {
                const float* query = queries.data() + q * dimensions;
                // Distances are those of an index of floats, whose rows are unit vectors.
                const auto expected = brute_force(metric, query, units, dimensions, 10);
                const auto alone = index.search({query, query + dimensions}, 10, pool)[0];
                ASSERT_EQ(ids(together[q]), ids(expected)) << dimensions << " " << static_cast<int>(metric) << " " << q;
                ASSERT_EQ(ids(alone), ids(expected)) << dimensions << " " << static_cast<int>(metric) << " " << q;
                for (std::size_t i = 0; i < 10; ++i) {
                    ASSERT_EQ(alone[i].distance, together[q][i].distance);
                    ASSERT_EQ(alone[i].distance, metric == Metric::cosine
                                                     ? lower_bound(metric, expected[i].distance, 0, 1)
                                                     : expected[i].distance);
                }
            }
        }
    }
}

TEST(Exact, TiesAreBrokenByRow)
{
    ThreadPool pool(2);
    std::vector<float> rows;
    for (int i = 0; i < 5000; ++i) rows.insert(rows.end(), {static_cast<float>(i % 3), 0});
    const Index index(Method::exact, Metric::l2, 2, rows, {}, pool);
    const auto found = index.search({0, 0}, 100, pool)[0];
    EXPECT_EQ(ids(found), ids(brute_force(Metric::l2, std::vector<float>{0, 0}.data(), rows, 2, 100)));
}

TEST(Exact, LeavesDeadRowsOut)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(3000, 8, 3);
    const std::vector<float> query = random_rows(1, 8, 4);
    std::vector<std::uint64_t> dead((3000 + 63) / 64, 0);
    for (const RowResult& result : brute_force(Metric::l2, query.data(), rows, 8, 40)) set_bit(dead, result.row);
    const Index index(Method::exact, Metric::l2, 8, rows, {}, pool);
    EXPECT_EQ(ids(index.search(query, 10, pool, {}, dead)[0]),
              ids(brute_force(Metric::l2, query.data(), rows, 8, 10, dead)));
}

TEST(Exact, AnswersSmallAndExtremeTables)
{
    ThreadPool pool(2);
    EXPECT_TRUE(Index(Method::exact, Metric::l2, 4, {}, {}, pool).search({0, 0, 0, 0}, 10, pool)[0].empty());
    EXPECT_EQ(ids(Index(Method::exact, Metric::l2, 2, {1, 2}, {}, pool).search({0, 0}, 10, pool)[0]),
              (std::vector<std::uint32_t>{0}));
    // Squares beyond float's range, beside small rows.
    for (const bool half : {false, true}) {
        std::vector<float> rows = random_rows(2000, 4, 5);
        for (std::size_t i = 0; i < 4 * 50; ++i) rows[i] *= 1e30F;
        for (const float scale : {1.0F, 1e30F}) {
            std::vector<float> query = random_rows(1, 4, 6, scale);
            const Index index(Method::exact, Metric::l2, 4, rows, vectors_option(half), pool);
            EXPECT_EQ(ids(index.search(query, 20, pool)[0]), ids(brute_force(Metric::l2, query.data(), rows, 4, 20)));
        }
    }
}

TEST(Exact, FarFromTheOriginStaysExact)
{
    ThreadPool pool(2);
    for (const bool half : {false, true}) {
        std::vector<float> rows = random_rows(4000, 16, 7, 0.01F);
        for (float& value : rows) value += 1000;
        const std::vector<float> queries(rows.begin(), rows.begin() + 16 * 12);
        const Index index(Method::exact, Metric::l2, 16, rows, vectors_option(half), pool);
        const auto found = index.search(queries, 10, pool);
        for (std::size_t q = 0; q < 12; ++q)
            EXPECT_EQ(ids(found[q]), ids(brute_force(Metric::l2, queries.data() + q * 16, rows, 16, 10)));
    }
}

TEST(Exact, ContinuationsGoOnWhereTheLastEnded)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(1000, 4, 8);
    for (float& value : rows) value = std::round(value);
    const std::vector<float> query{0, 0, 0, 0};
    const Index index(Method::exact, Metric::l2, 4, rows, {}, pool);
    EXPECT_EQ(ids(expect_every_row_once(index, query, 1000, pool)),
              ids(brute_force(Metric::l2, query.data(), rows, 4, 1000)));
}

}  // namespace
}  // namespace pgwarp::test::exact_test
