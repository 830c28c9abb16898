// The ivfadc method on the CPU against brute force in float64: answers, merges of rows, calibration, continuations,
// builds.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "methods_fixture.h"
#include "protocol/calibration.h"
#include "vector_index_checks.h"

namespace pgwarp::test::ivfadc_test
{
namespace
{

struct Case {
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
    std::size_t dimensions;
};

class IvfadcAnswers : public testing::TestWithParam<Case>
{
protected:
    void make(std::size_t count)
    {
        const Case given = GetParam();
        rows = random_rows(count, given.dimensions, 1);
        queries = random_rows(50, given.dimensions, 1);
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
    }
    ThreadPool pool{2};
    std::vector<float> rows;
    std::vector<float> queries;
};

// With every list probed only the stored precision limits recall, and values stay within their bounds.
TEST_P(IvfadcAnswers, FindAllWhereAllListsAreProbed)
{
    const auto [metric, codes, refine, dimensions] = GetParam();
    make(6000);
    const bool codes_alone = codes != 1 && refine == 0;
    auto options = make_list({{"codes", codes}, {"refine", refine}});
    if (codes_alone && codes == 0) options.set("subquantizers", static_cast<std::int64_t>(dimensions));
    const Index index(Method::ivfadc, metric, dimensions, rows, options, pool);
    const auto found = index.search(queries, 10, pool, make_list({{"probes", 65536}}));
    double total = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        const float* query = queries.data() + q * dimensions;
        const auto expected = brute_force(metric, query, rows, dimensions, 10);
        ASSERT_EQ(found[q].size(), 10U);
        ASSERT_NO_FATAL_FAILURE(expect_values_within_bounds(index, query, rows, found[q]));
        double error = 0;
        double worst = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < 10; ++i) {
            const RowResult& result = found[q][i];
            const double exact = canonical_distance(metric, query, rows.data() + result.row * dimensions, dimensions);
            error = std::max(error, exact - result.distance);
            worst = std::max(worst, exact);
        }
        total += recall(found[q], expected);
        // Rows no further apart than the stored precision tells may stand in for each other.
        if (!codes_alone) {
            ASSERT_LE(worst, expected[9].distance + 2 * error) << q;
        }
    }
    EXPECT_GE(total / static_cast<double>(found.size()), 0.9);
}

TEST_P(IvfadcAnswers, AreEncodedAlikeWhenAdded)
{
    const auto [metric, codes, refine, dimensions] = GetParam();
    make(2000);
    const Index index(Method::ivfadc, metric, dimensions, rows,
                      make_list({{"codes", codes}, {"refine", refine}, {"opq", codes == 0 ? 1 : 0}}), pool);
    expect_encoded_alike(index, rows, 500, 700, pool);
}

TEST_P(IvfadcAnswers, KeepWhatTheCalibrationPromises)
{
    const auto [metric, codes, refine, dimensions] = GetParam();
    if (dimensions < 8) GTEST_SKIP() << "too few dimensions to probe in part";
    make(6000);
    const Index index(Method::ivfadc, metric, dimensions, rows, make_list({{"codes", codes}, {"refine", refine}}),
                      pool);
    const Calibration calibration = index.builder->calibration();
    ASSERT_GT(calibration.count, 0U);
    for (std::uint32_t i = 1; i < calibration.count; ++i) {
        ASSERT_GT(calibration.points[i].effort, calibration.points[i - 1].effort);
        ASSERT_GE(calibration.points[i].recall[1], calibration.points[i - 1].recall[1]);
    }
    // Queries from the rows themselves, as the calibration took them.
    const CalibrationPoint& point = calibration.points[calibration.count / 2];
    std::vector<float> own;
    for (std::size_t i = 0; i < 200; ++i)
        own.insert(own.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * 29 * dimensions),
                   rows.begin() + static_cast<std::ptrdiff_t>((i * 29 + 1) * dimensions));
    // The number of rows that the backend ranks by the heap's rows, and the row itself.
    const std::uint32_t width = search_width({index.searcher->result_kind()}, 10) + 1;
    const auto found = index.search(own, width, pool, {}, {}, point.effort);
    double total = 0;
    for (std::size_t q = 0; q < 200; ++q) {
        auto expected = brute_force(metric, own.data() + q * dimensions, rows, dimensions, 11);
        std::erase_if(expected, [&](const RowResult& result) { return result.row == q * 29; });
        expected.resize(10);
        total += recall(found[q], expected);
    }
    EXPECT_GE(total / 200, point.recall[1] - 0.05);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, IvfadcAnswers,
    testing::Values(Case{Metric::l2, 0, 0, 32}, Case{Metric::l2, 0, 1, 32}, Case{Metric::l2, 0, 2, 32},
                    Case{Metric::l2, 1, 1, 32}, Case{Metric::inner_product, 0, 0, 32},
                    Case{Metric::inner_product, 0, 1, 32}, Case{Metric::inner_product, 0, 2, 32},
                    Case{Metric::cosine, 0, 0, 32}, Case{Metric::cosine, 0, 1, 32}, Case{Metric::cosine, 0, 2, 32},
                    Case{Metric::l2, 0, 1, 131}, Case{Metric::l2, 0, 1, 3}, Case{Metric::l2, 0, 1, 1},
                    Case{Metric::l2, 2, 0, 32}, Case{Metric::l2, 2, 1, 32}, Case{Metric::l2, 2, 2, 32},
                    Case{Metric::inner_product, 2, 0, 32}, Case{Metric::inner_product, 2, 1, 32},
                    Case{Metric::cosine, 2, 0, 32}, Case{Metric::cosine, 2, 1, 127}, Case{Metric::cosine, 2, 2, 32},
                    Case{Metric::l2, 2, 0, 1}, Case{Metric::l2, 2, 0, 3}, Case{Metric::l2, 2, 1, 131}));

TEST(Ivfadc, TakesAnyNumberOfSubquantizersAndRotations)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(3000, 30, 9);
    const std::vector<float> queries(rows.begin(), rows.begin() + 30 * 20);
    for (const std::int64_t opq : {0, 1}) {
        for (const std::int64_t subquantizers : {1, 7, 13, 30}) {
            const Index index(Method::ivfadc, Metric::l2, 30, rows,
                              make_list({{"refine", 0}, {"subquantizers", subquantizers}, {"opq", opq}}), pool);
            const auto found = index.search(queries, 50, pool, make_list({{"probes", 65536}}));
            double total = 0;
            for (std::size_t q = 0; q < 20; ++q)
                total += recall(found[q], brute_force(Metric::l2, queries.data() + q * 30, rows, 30, 1));
            EXPECT_GE(total / 20, subquantizers == 1 ? 0.5 : 0.9) << subquantizers << " " << opq;
        }
    }
    EXPECT_THROW(Index(Method::ivfadc, Metric::l2, 30, rows, make_list({{"subquantizers", 31}}), pool), BadRequest);
}

// Rows whose first dimensions carry most: the case that a rotation is for.
std::vector<float> falling_rows(std::size_t count, std::size_t dimensions, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> rows(count * dimensions);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = normal(random) / std::sqrt(static_cast<float>(i % dimensions + 1));
    return rows;
}

TEST(Ivfadc, RotatesManyDimensionsAtRandom)
{
    ThreadPool pool(2);
    constexpr std::size_t dimensions = 4096;
    const std::vector<float> rows = falling_rows(1200, dimensions, 11);
    const std::vector<float> queries = falling_rows(20, dimensions, 12);
    double found[2] = {};
    for (const std::int64_t opq : {0, 1}) {
        const Index index(Method::ivfadc, Metric::l2, dimensions, rows,
                          make_list({{"refine", 0}, {"lists", 1}, {"subquantizers", 256}, {"opq", opq}}), pool);
        const auto results = index.search(queries, 10, pool, make_list({{"probes", 65536}}));
        for (std::size_t q = 0; q < results.size(); ++q)
            found[opq] +=
                recall(results[q], brute_force(Metric::l2, queries.data() + q * dimensions, rows, dimensions, 10)) /
                static_cast<double>(results.size());
        std::uint64_t signs = 0;
        for (const ArrayShape& array : index.builder->arrays()) {
            EXPECT_STRNE(array.name, "rotation");
            if (std::string(array.name) == "rotation_signs") signs = array.bytes();
        }
        EXPECT_EQ(signs, opq == 1 ? 4 * dimensions : 0);
        // An index whose rotation is missing or has another shape is refused.
        if (opq == 0) {
            const auto options = make_list({{"refine", 0}, {"lists", 1}, {"subquantizers", 256}, {"opq", 1}});
            EXPECT_THROW(find_method(Method::ivfadc)->make_searcher(index.shape, options, index.builder->arrays()),
                         BadRequest);
        }
    }
    EXPECT_GE(found[1], found[0]);
}

TEST(Ivfadc, AnswersSmallAndDegenerateTables)
{
    ThreadPool pool(2);
    for (const std::int64_t codes : {0, 1, 2}) {
        for (const std::int64_t refine : {0, 1, 2}) {
            const auto options = make_list({{"codes", codes}, {"refine", refine}, {"lists", 100}});
            EXPECT_TRUE(Index(Method::ivfadc, Metric::l2, 3, {}, options, pool).search({0, 0, 0}, 5, pool)[0].empty());
            EXPECT_EQ(ids(Index(Method::ivfadc, Metric::l2, 3, {1, 2, 3}, options, pool).search({0, 0, 0}, 5, pool)[0]),
                      (std::vector<std::uint32_t>{0}));
            const std::vector<float> equal(3 * 500, 7.5F);
            const Index same(Method::ivfadc, Metric::l2, 3, equal, options, pool);
            EXPECT_EQ(same.search({7.5F, 7.5F, 7.5F}, 10, pool)[0].size(), 10U);
            const Index few(Method::ivfadc, Metric::l2, 3, random_rows(20, 3, 3), options, pool);
            EXPECT_EQ(few.search({0, 0, 0}, 100, pool, make_list({{"probes", 1}}))[0].size(), 20U);
        }
    }
}

TEST(Ivfadc, TakesWideAndHugeRows)
{
    ThreadPool pool(2);
    const std::vector<float> wide = random_rows(40, 16000, 4);
    const Index index(Method::ivfadc, Metric::l2, 16000, wide, {}, pool);
    const std::vector<float> query(wide.begin() + 16000 * 3, wide.begin() + 16000 * 4);
    EXPECT_EQ(index.search(query, 1, pool)[0].at(0).row, 3U);

    std::vector<float> huge = random_rows(1000, 4, 5, 1e30F);
    const Index large(Method::ivfadc, Metric::l2, 4, huge, make_list({{"refine", 2}}), pool);
    const std::vector<float> near(huge.begin() + 40, huge.begin() + 44);
    EXPECT_EQ(ids(large.search(near, 10, pool, make_list({{"probes", 65536}}))[0]),
              ids(brute_force(Metric::l2, near.data(), huge, 4, 10)));
}

TEST(Ivfadc, LeavesDeadRowsOutAndStillFindsK)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(2000, 16, 6);
    for (const std::int64_t kind : {0, 1, 2, 20, 21, 22}) {
        const std::int64_t refine = kind % 10;
        const Index index(Method::ivfadc, Metric::l2, 16, rows, make_list({{"codes", kind / 10}, {"refine", refine}}),
                          pool);
        std::vector<std::uint64_t> dead((2000 + 63) / 64, ~std::uint64_t{0});
        for (const std::size_t row : {5, 700, 1999}) dead[row / 64] &= ~(std::uint64_t{1} << (row % 64));
        auto found =
            ids(index.search({rows.begin(), rows.begin() + 16}, 10, pool, make_list({{"probes", 1}}), dead)[0]);
        std::sort(found.begin(), found.end());
        EXPECT_EQ(found, (std::vector<std::uint32_t>{5, 700, 1999}));
    }
}

TEST(Ivfadc, ContinuationsOfferEveryRowOnceInOrder)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(700, 16, 7);
    for (const std::int64_t kind : {0, 1, 2, 20, 21, 22}) {
        const std::int64_t refine = kind % 10;
        const Index index(Method::ivfadc, Metric::l2, 16, rows, make_list({{"codes", kind / 10}, {"refine", refine}}),
                          pool);
        expect_every_row_once(index, std::span(rows).first(16), 700, pool);
    }
}

TEST(Ivfadc, ContinuesBehindWhatTheSearchFound)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(2000, 16, 12);
    for (const std::int64_t kind : {0, 1, 2, 20, 21, 22}) {
        const std::int64_t refine = kind % 10;
        const Index index(Method::ivfadc, Metric::l2, 16, rows, make_list({{"codes", kind / 10}, {"refine", refine}}),
                          pool);
        SearchBatch batch;
        batch.queries = std::span(rows).subspan(32, 16);
        batch.count = 1;
        batch.k = 20;
        std::vector<RowResult> all;
        index.searcher->search_exact(batch, -std::numeric_limits<double>::infinity(), 0, all, pool);
        const auto found =
            index.search({rows.begin() + 32, rows.begin() + 48}, 10, pool, make_list({{"probes", 65536}}))[0];
        ASSERT_EQ(found.size(), 10U);
        for (std::size_t i = 0; i < 10; ++i) {
            EXPECT_EQ(found[i].row, all[i].row) << refine;
            EXPECT_EQ(found[i].distance, all[i].distance) << refine;
        }
    }
}

TEST(Ivfadc, BuildsTheSameBytesOnAnyNumberOfThreads)
{
    const std::vector<float> rows = random_rows(5000, 24, 8);
    for (const ParameterList& options : {make_list({{"opq", 0}}), make_list({{"opq", 1}}), make_list({{"codes", 2}})})
        expect_same_on_any_threads(Method::ivfadc, rows, 24, options);
}

TEST(Ivfadc, StopsWhenCancelled)
{
    expect_stops_when_cancelled(Method::ivfadc);
}

// Every row exists four times: the order in which equal rows are offered decides which of them are kept.
TEST(Ivfadc, FindsTheSameOnSeveralThreads)
{
    constexpr std::size_t dimensions = 512;
    ThreadPool one(1);
    ThreadPool four(4);
    std::vector<float> rows = random_rows(5000, dimensions, 8);
    normalise_rows(rows, dimensions);
    const std::vector<float> queries(rows.begin() + 300, rows.begin() + 300 + 5 * dimensions);
    for (int i = 0; i < 2; ++i) rows.insert(rows.end(), rows.begin(), rows.begin() + static_cast<long>(rows.size()));
    const std::vector<std::uint64_t> dead((rows.size() / dimensions + 63) / 64, 0x1111111111111111U);
    for (const auto& [metric, codes] : {std::pair(Metric::l2, 0), {Metric::cosine, 0}, {Metric::cosine, 1}}) {
        const Index index(Method::ivfadc, metric, dimensions, rows, make_list({{"lists", 64}, {"codes", codes}}), four);
        SearchBatch batch;
        batch.count = 1;
        batch.effort = 60;
        for (std::size_t q = 0; q < 10; ++q) {
            batch.queries = std::span(queries).subspan(q / 2 * dimensions, dimensions);
            batch.dead = q % 2 == 0 ? RowBitmap() : RowBitmap(dead);
            batch.k = q < 4 ? 10 : 200;
            std::vector<std::vector<RowResult>> alone;
            std::vector<std::vector<RowResult>> together;
            index.searcher->search(batch, alone, one);
            index.searcher->search(batch, together, four);
            EXPECT_EQ(alone[0].size(), batch.k);
            EXPECT_TRUE(std::equal(
                alone[0].begin(), alone[0].end(), together[0].begin(), together[0].end(),
                [](const RowResult& a, const RowResult& b) { return a.row == b.row && a.distance == b.distance; }));
        }
        CancelToken cancel;
        batch.cancel = &cancel;
        cancel.cancel();
        std::vector<std::vector<RowResult>> results;
        EXPECT_THROW(index.searcher->search(batch, results, four), Cancelled);
    }
}

// Halfvecs are halves already: those that are kept to rank candidates again lose nothing.
TEST(Ivfadc, HalvesOfHalvesAreExact)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(4000, 24, 1);
    for (float& value : rows) value = float_of_half(half_of_float(value + 100));
    const std::vector<float> queries(rows.begin(), rows.begin() + 24 * 8);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        const Index index(Method::ivfadc, metric, 24, rows, make_list({{"lists", 20}, {"refine", 1}}), pool,
                          ElementType::float16);
        EXPECT_LT(index.searcher->bound_width(queries.data()), 1e-6);
        const auto found = index.search(queries, 5, pool, make_list({{"probes", 20}, {"refine_factor", 50}}));
        for (std::size_t q = 0; q < 8; ++q) {
            const auto expected = brute_force(metric, queries.data() + q * 24, rows, 24, 5);
            ASSERT_EQ(ids(found[q]), ids(expected)) << q;
            for (std::size_t i = 0; i < 5; ++i) {
                EXPECT_NEAR(found[q][i].distance, expected[i].distance, 1e-6) << q;
            }
        }
    }
}

}  // namespace
}  // namespace pgwarp::test::ivfadc_test
