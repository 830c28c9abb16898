// codes = int8 of ivfadc: the codes themselves, and answers against brute force in float64.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "methods/arrays.h"
#include "methods/ivfadc/ivfadc.h"
#include "methods/rows/byte_lists.h"
#include "methods_fixture.h"

namespace pgwarp::test::int8_test
{
namespace
{

ParameterList int8_options(std::int64_t refine, std::int64_t lists = 0)
{
    return make_list({{"codes", 2}, {"refine", refine}, {"lists", lists}});
}

const ParameterList all_lists = make_list({{"probes", 65536}});

// Of the k nearest rows, among the first `asked` results.
double mean_recall(const Index& index, Metric metric, const std::vector<float>& rows, const std::vector<float>& queries,
                   std::size_t dimensions, std::size_t k, std::size_t asked, ThreadPool& pool)
{
    const auto found = index.search(queries, static_cast<std::uint32_t>(asked), pool, all_lists);
    double total = 0;
    for (std::size_t q = 0; q < found.size(); ++q)
        total += recall(found[q], brute_force(metric, queries.data() + q * dimensions, rows, dimensions, k));
    return total / static_cast<double>(found.size());
}

class Int8Widths : public testing::TestWithParam<std::size_t>
{
};

// A byte is off by half a scale at most, and pieces make the same as the whole.
TEST_P(Int8Widths, RowsComeBack)
{
    const std::size_t dimensions = GetParam();
    constexpr std::size_t count = 37;
    std::vector<float> rows = random_rows(count, dimensions, 3);
    std::fill_n(rows.begin(), dimensions, 0.0F);
    const std::vector<float> centroid = random_rows(1, dimensions, 4, 0.1F);
    ByteLists whole;
    ByteLists pieces;
    whole.layout({0, count}, dimensions, true);
    pieces.layout({0, count}, dimensions, true);
    std::vector<std::uint8_t> bytes(dimensions);
    std::vector<float> decoded(dimensions);
    std::vector<float> again(dimensions);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows.data() + i * dimensions;
        whole.set(i, row, centroid.data());
        const float scale = encode_bytes(row, centroid.data(), dimensions, bytes.data());
        for (std::size_t d = 0; d < dimensions; d += 5)
            pieces.put(i, d, std::min<std::size_t>(5, dimensions - d), bytes.data() + d);
        pieces.finish(i, scale);
        whole.decode(i, centroid.data(), decoded.data());
        pieces.decode(i, centroid.data(), again.data());
        ASSERT_EQ(decoded, again);
        for (std::size_t d = 0; d < dimensions; ++d) ASSERT_NEAR(decoded[d], row[d], 0.5001F * scale + 1e-6F) << i;
    }
    ByteQuery query;
    query.assign(rows.data() + dimensions, centroid.data(), dimensions);
    std::vector<float> scores(whole.padded(1));
    std::vector<float> same(whole.padded(1));
    whole.score(1, query, 0, scores.data());
    pieces.score(1, query, 0, same.data());
    EXPECT_EQ(scores, same);
}

INSTANTIATE_TEST_SUITE_P(Widths, Int8Widths, testing::Values(1, 3, 4, 127, 1536));

TEST(Int8, KeepsRowsThatAreNothingOrTooMuchFinite)
{
    const float huge = std::numeric_limits<float>::max();
    const std::vector<float> rows{0, 0, 0, huge, -huge, huge, 1e-38F, 0, -1e-38F};
    const std::vector<float> centroid{-huge, huge, 0};
    ByteLists lists;
    lists.layout({3}, 3, true);
    std::vector<float> decoded(3);
    for (std::size_t i = 0; i < 3; ++i) {
        lists.set(i, rows.data() + i * 3, centroid.data());
        lists.decode(i, centroid.data(), decoded.data());
        for (const float value : decoded) EXPECT_TRUE(std::isfinite(value)) << i;
    }
}

struct Case {
    Metric metric;
    std::size_t dimensions;
};

class Int8Recall : public testing::TestWithParam<Case>
{
};

TEST_P(Int8Recall, IsNearlyThatOfTheVectors)
{
    const auto [metric, dimensions] = GetParam();
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(dimensions > 1000 ? 1000 : 3000, dimensions, 1);
    std::vector<float> queries = random_rows(30, dimensions, 1);
    for (std::size_t i = 0; i < queries.size(); ++i) queries[i] = 0.97F * queries[i] + 0.02F;
    if (metric == Metric::cosine) {
        normalise_rows(rows, dimensions);
        normalise_rows(queries, dimensions);
    }
    for (const std::int64_t refine : {0, 1, 2}) {
        const Index index(Method::ivfadc, metric, dimensions, rows, int8_options(refine), pool);
        const double found = mean_recall(index, metric, rows, queries, dimensions, 10, 10, pool);
        EXPECT_GE(found, refine == 0 ? 0.93 : 0.99) << refine;
        RecordProperty("recall_refine_" + std::to_string(refine), std::to_string(found));
        // The candidates that the backend ranks hold all neighbours: the calibration depends on it.
        if (refine == 0) {
            EXPECT_GE(mean_recall(index, metric, rows, queries, dimensions, 10, 64, pool), 0.999);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Int8Recall,
                         testing::Values(Case{Metric::l2, 3}, Case{Metric::l2, 127}, Case{Metric::l2, 1536},
                                         Case{Metric::cosine, 127}, Case{Metric::cosine, 1536},
                                         Case{Metric::inner_product, 3}, Case{Metric::inner_product, 128}));

// The scan is the one over bytes derived from vectors: its answer does not depend on the stored codes.
TEST(Int8, FindsWhatDerivedBytesFind)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(4000, 24, 5);
    const std::vector<float> queries = random_rows(30, 24, 6);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        const Index stored(Method::ivfadc, metric, 24, rows, int8_options(2), pool);
        const Index derived(Method::ivfadc, metric, 24, rows, make_list({{"codes", 1}, {"refine", 2}}), pool);
        const auto settings = make_list({{"probes", 9}});
        const auto a = stored.search(queries, 10, pool, settings);
        const auto b = derived.search(queries, 10, pool, settings);
        for (std::size_t q = 0; q < a.size(); ++q) EXPECT_EQ(ids(a[q]), ids(b[q]));
    }
}

// One row far from all others takes no precision from them.
TEST(Int8, StaysPreciseBesideHugeRows)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(3000, 32, 7);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t d = 0; d < 32; ++d) rows[(100 + i) * 32 + d] *= 1e15F;
    const std::vector<float> queries(rows.begin() + 32 * 500, rows.begin() + 32 * 530);
    for (const std::int64_t refine : {0, 2}) {
        const Index index(Method::ivfadc, Metric::l2, 32, rows, int8_options(refine), pool);
        EXPECT_GE(mean_recall(index, Metric::l2, rows, queries, 32, 10, 10, pool), 0.93) << refine;
        const std::vector<float> far(rows.begin() + 32 * 101, rows.begin() + 32 * 102);
        EXPECT_EQ(index.search(far, 1, pool, all_lists)[0].at(0).row, 101U);
    }
}

TEST(Int8, RanksDuplicatesAndZeroRows)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(1000, 17, 8);
    std::fill_n(rows.begin(), 17 * 50, 0.0F);
    for (std::size_t i = 0; i < 17 * 50; ++i) rows[17 * 50 + i] = rows[17 * 100 + i % 17];
    for (const std::int64_t refine : {0, 1, 2}) {
        const Index index(Method::ivfadc, Metric::l2, 17, rows, int8_options(refine, 20), pool);
        const auto zeros = index.search(std::vector<float>(17, 0.0F), 40, pool, all_lists)[0];
        ASSERT_EQ(zeros.size(), 40U);
        for (const RowResult& result : zeros) EXPECT_LT(result.row, 50U) << refine;
        const auto equal = index.search({rows.begin() + 17 * 60, rows.begin() + 17 * 61}, 51, pool, all_lists)[0];
        for (const RowResult& result : equal) EXPECT_TRUE(result.row >= 50 && result.row <= 100) << refine;
        for (const RowResult& result : equal) EXPECT_NEAR(result.distance, equal[0].distance, 1e-2);
    }
}

// A byte a dimension and a scale a row, beside the row's list.
TEST(Int8, StoresAByteADimension)
{
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(500, 20, 9);
    const Index index(Method::ivfadc, Metric::l2, 20, rows, int8_options(0, 10), pool);
    std::uint64_t row_bytes = 0;
    for (const ArrayShape& array : index.builder->arrays()) {
        if (array.rows == 500) row_bytes += array.bytes() / 500;
    }
    EXPECT_EQ(row_bytes, 20U + 4 + 4);
    EXPECT_EQ(index.builder->effective_options().get("codes", -1), 2);
    EXPECT_EQ(index.searcher->result_kind(), ResultKind::approximate);
}

TEST(Int8, RefusesArraysThatNoBuildMakes)
{
    ThreadPool pool(1);
    const std::vector<float> rows = random_rows(100, 8, 10);
    const Index index(Method::ivfadc, Metric::l2, 8, rows, int8_options(1, 4), pool);
    std::vector<ArrayShape> arrays = index.builder->arrays();
    const ParameterList options = index.builder->effective_options();
    const auto searcher = make_ivfadc_searcher(index.shape, options, arrays);
    for (const ArrayShape& array : arrays) {
        std::vector<std::byte> bytes = index.contents(array);
        if (std::strcmp(array.name, array_code_scale) == 0) std::fill(bytes.begin(), bytes.end(), std::byte{0});
        searcher->write(array.name, 0, bytes);
    }
    EXPECT_THROW(searcher->finish_load(pool), BadRequest);
    std::erase_if(arrays, [](const ArrayShape& array) { return std::strcmp(array.name, array_code_scale) == 0; });
    EXPECT_THROW(make_ivfadc_searcher(index.shape, options, arrays), BadRequest);
    EXPECT_THROW(Index(Method::ivfadc, Metric::l2, 8, rows, make_list({{"codes", 3}}), pool), BadRequest);
}

// Proposals may leave out rows beyond the reach, and no others: also beside rows with large errors, where distances
// of neighbours are below the precision of bytes, and far from all rows.
TEST(Int8, ProposalsKeepAllWithinReach)
{
    constexpr std::size_t dimensions = 24;
    ThreadPool pool(2);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        std::vector<float> rows = random_rows(3000, dimensions, 5);
        for (std::size_t i = 0; i < 40 * dimensions; ++i) rows[i] = rows[i % dimensions] * (1 + 1e-4F * (i % 7));
        for (std::size_t d = 0; d < dimensions; ++d) rows[50 * dimensions + d] *= 30;
        std::vector<float> queries(rows.begin(), rows.begin() + 60 * dimensions);
        for (std::size_t i = 30 * dimensions; i < 40 * dimensions; ++i) queries[i] *= 20;
        if (metric == Metric::cosine) {
            normalise_rows(rows, dimensions);
            normalise_rows(queries, dimensions);
        }
        const Index index(Method::ivfadc, metric, dimensions, rows, make_list({{"codes", 2}, {"refine", 0}}), pool);
        std::vector<double> reach;
        for (std::size_t q = 0; q < 60; ++q)
            reach.push_back(brute_force(metric, queries.data() + q * dimensions, rows, dimensions, 10).back().distance);
        SearchBatch batch;
        batch.queries = queries;
        batch.count = 60;
        batch.k = 3000;
        batch.settings = make_list({{"probes", 65536}});
        batch.proposals_will_do = true;
        batch.reach = reach;
        std::vector<std::vector<RowResult>> results;
        index.searcher->search(batch, results, pool);
        std::size_t proposed = 0;
        for (std::size_t q = 0; q < 60; ++q) {
            proposed += results[q].size();
            for (const std::uint32_t row :
                 ids(brute_force(metric, queries.data() + q * dimensions, rows, dimensions, 10))) {
                EXPECT_TRUE(std::any_of(results[q].begin(), results[q].end(),
                                        [row](const RowResult& result) { return result.row == row; }))
                    << q << " lacks " << row;
            }
        }
        EXPECT_LT(proposed, 60U * 3000 / 2) << static_cast<int>(metric);
    }
}

}  // namespace
}  // namespace pgwarp::test::int8_test
