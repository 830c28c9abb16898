// Rows of bits: exact against counting bit by bit, graph by its recall.
#include <gtest/gtest.h>

#include "bit_fixture.h"
#include "methods/arrays.h"
#include "methods/graph/graph.h"
#include "methods/graph/merge_build.h"
#include "methods_fixture.h"

namespace pgwarp::test
{
namespace
{

constexpr Metric bit_metrics[] = {Metric::hamming, Metric::jaccard};

Index make_index(Method method, Metric metric, std::size_t words, const std::vector<float>& rows, ThreadPool& pool)
{
    return Index(method, metric, words, rows, {}, pool, ElementType::bit);
}

std::vector<RowResult> naive(Metric metric, const float* query, const std::vector<float>& rows, std::size_t words,
                             std::size_t k, RowBitmap dead = {})
{
    return nearest_rows(query, rows, words, k, dead,
                        [&](const float* a, const float* b) { return naive_bit_distance(metric, a, b, words); });
}

void expect_same(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].row, wanted[i].row) << i;
        EXPECT_EQ(found[i].distance, wanted[i].distance) << i;
    }
}

// The share of the k nearest that were found, where equally near rows count as right.
double recall_of(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    std::size_t hits = 0;
    for (const RowResult& result : found) hits += result.distance <= wanted.back().distance ? 1 : 0;
    return static_cast<double>(hits) / static_cast<double>(wanted.size());
}

class BitLengths : public testing::TestWithParam<std::size_t>
{
};

TEST_P(BitLengths, ExactFindsWhatCountingFinds)
{
    const std::size_t bits = GetParam();
    const std::size_t words = words_of_bits(bits);
    const std::size_t count = bits > 10000 ? 40 : 700;  // of few bits most are alike
    ThreadPool pool(2);
    for (const Metric metric : bit_metrics) {
        std::vector<float> rows = clustered_bits(count, bits, 3, 8, 0.3);
        std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(5 * words), 2 * words, 0.0F);
        const Index index = make_index(Method::exact, metric, words, rows, pool);
        EXPECT_EQ(index.searcher->result_kind(), ResultKind::exact);
        const std::vector<ArrayShape> arrays = index.builder->arrays();
        const ArrayShape* stored = find_array(arrays, "vectors");
        ASSERT_NE(stored, nullptr);
        EXPECT_EQ(stored->bytes(), count * words * 4);
        std::vector<std::uint64_t> dead((count + 63) / 64, 0);
        dead[0] = 0x5;
        for (const std::size_t queries : {1, 9}) {
            const std::vector<float> query = clustered_bits(queries, bits, 4, 8, 0.3);
            const auto found = index.search(query, 10, pool, {}, dead);
            for (std::size_t q = 0; q < queries; ++q)
                expect_same(found[q], naive(metric, query.data() + q * words, rows, words, 10, dead));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Bits, BitLengths, testing::Values(1, 7, 8, 9, 63, 64, 65, 1000, 64000));

TEST(ExactBits, ContinuationsGiveAllRowsInOrder)
{
    ThreadPool pool(2);
    const std::size_t words = words_of_bits(65);
    const std::vector<float> rows = clustered_bits(300, 65, 5);
    const std::vector<float> query = clustered_bits(1, 65, 6);
    const Index index = make_index(Method::exact, Metric::jaccard, words, rows, pool);
    const std::vector<RowResult> wanted = naive(Metric::jaccard, query.data(), rows, words, 300);
    SearchBatch batch;
    batch.queries = query;
    batch.count = 1;
    batch.k = 50;
    std::vector<RowResult> all;
    double distance = -HUGE_VAL;
    std::uint32_t row = 0;
    for (std::vector<RowResult> next; all.empty() || !next.empty();) {
        index.searcher->search_exact(batch, distance, row, next, pool);
        all.insert(all.end(), next.begin(), next.end());
        if (next.empty()) break;
        distance = next.back().distance;
        row = next.back().row;
    }
    expect_same(all, wanted);
}

TEST(ExactBits, NoRowsAndNothingAskedFor)
{
    ThreadPool pool(1);
    const std::vector<float> query = clustered_bits(2, 64, 6);
    const Index empty = make_index(Method::exact, Metric::hamming, 2, {}, pool);
    for (const auto& found : empty.search(query, 5, pool)) EXPECT_TRUE(found.empty());
    const Index some = make_index(Method::exact, Metric::hamming, 2, clustered_bits(4, 64, 7), pool);
    for (const auto& found : some.search(query, 0, pool)) EXPECT_TRUE(found.empty());
    for (const auto& found : some.search(query, 100, pool)) EXPECT_EQ(found.size(), 4U);
}

double graph_recall(const Index& index, Metric metric, const std::vector<float>& rows,
                    const std::vector<float>& queries, std::size_t words, std::int64_t ef, ThreadPool& pool)
{
    const auto found = index.search(queries, 10, pool, make_list({{"ef_search", ef}}));
    double sum = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        for (const RowResult& result : found[q]) {
            EXPECT_EQ(result.distance,
                      naive_bit_distance(metric, queries.data() + q * words, rows.data() + result.row * words, words));
        }
        sum += recall_of(found[q], brute_force(metric, queries.data() + q * words, rows, words, 10));
    }
    return sum / static_cast<double>(found.size());
}

class GraphOfBits : public testing::TestWithParam<Metric>
{
};

TEST_P(GraphOfBits, FindsNeighboursAmongClusters)
{
    ThreadPool pool(2);
    for (const std::size_t bits : {64, 500}) {
        const std::size_t words = words_of_bits(bits);
        const std::vector<float> all = clustered_bits(9040, bits, 11, 60, 0.2, 0.25);
        const std::vector<float> rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(9000 * words));
        const std::vector<float> queries(all.begin() + static_cast<std::ptrdiff_t>(9000 * words), all.end());
        const Index index = make_index(Method::graph, GetParam(), words, rows, pool);
        EXPECT_GE(graph_recall(index, GetParam(), rows, queries, words, 64, pool), 0.95) << bits;
        EXPECT_GE(graph_recall(index, GetParam(), rows, queries, words, 512, pool), 0.99) << bits;
    }
}

// Calibrated recall holds for queries that the build has not seen, though many rows are equally near.
TEST_P(GraphOfBits, CalibrationIsKept)
{
    ThreadPool pool(2);
    const std::size_t bits = 96;
    const std::size_t words = words_of_bits(bits);
    const std::vector<float> all = clustered_bits(20200, bits, 12, 100, 0.3, 0.3);
    const std::vector<float> rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(20000 * words));
    const std::vector<float> queries(all.begin() + static_cast<std::ptrdiff_t>(20000 * words), all.end());
    const Index index = make_index(Method::graph, GetParam(), words, rows, pool);
    const Calibration calibration = index.builder->calibration();
    ASSERT_GT(calibration.count, 1U);
    EXPECT_GE(calibration.points[calibration.count - 1].recall[1], 0.98F);
    const CalibrationPoint& some = calibration.points[calibration.count / 2];
    EXPECT_GE(graph_recall(index, GetParam(), rows, queries, words, some.effort, pool), some.recall[1] - 0.03);
}

TEST_P(GraphOfBits, EqualRowsAndRowsWithoutOnes)
{
    ThreadPool pool(2);
    // Of eight bits, hardly more than 256 rows differ; a fifth has no bit set.
    std::vector<float> rows = clustered_bits(5000, 8, 13, 4, 0.5, 0.8);
    for (std::size_t i = 0; i < rows.size(); i += 5) rows[i] = 0;
    const Index index = make_index(Method::graph, GetParam(), 1, rows, pool);
    const std::vector<float> queries = clustered_bits(40, 8, 14, 4, 0.5, 0.8);
    EXPECT_GE(graph_recall(index, GetParam(), rows, queries, 1, 128, pool), 0.95);
    const std::vector<float> same(600, std::bit_cast<float>(0x00ff00ffU));
    const Index equal = make_index(Method::graph, GetParam(), 1, same, pool);
    const auto found = equal.search({same.front()}, 10, pool, make_list({{"ef_search", 64}}));
    ASSERT_EQ(found[0].size(), 10U);
    for (const RowResult& result : found[0]) EXPECT_EQ(result.distance, 0);
}

TEST_P(GraphOfBits, TheSameHoweverManyThreads)
{
    const std::vector<float> rows = clustered_bits(3000, 200, 15);
    const std::size_t words = words_of_bits(200);
    ThreadPool one(1);
    ThreadPool three(3);
    const Index a = make_index(Method::graph, GetParam(), words, rows, one);
    const Index b = make_index(Method::graph, GetParam(), words, rows, three);
    for (const ArrayShape& array : a.builder->arrays()) EXPECT_EQ(a.contents(array), b.contents(array)) << array.name;
}

// The index is built of half of the rows; a merge adds the other half.
TEST_P(GraphOfBits, Grows)
{
    ThreadPool pool(2);
    const std::size_t words = words_of_bits(300);
    const std::vector<float> rows = clustered_bits(6000, 300, 16, 40, 0.2, 0.3);
    const std::size_t half = 3000;
    const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(half * words);
    const Index old = make_index(Method::graph, GetParam(), words, {rows.begin(), middle}, pool);
    const auto merge_builder = make_graph_merge_builder(old.shape, old.builder->effective_options());
    for (const ArrayShape& array : old.builder->arrays()) merge_builder->give(array, 0, old.contents(array));
    RowBuffer new_rows(words);
    for (std::size_t i = half; i < 6000; ++i) {
        const Tid tid{static_cast<std::uint32_t>(i), 1, 0};
        new_rows.append({&tid, 1}, std::span(rows).subspan(i * words, words));
    }
    merge_builder->run(new_rows, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    std::vector<ArrayShape> arrays;
    std::vector<std::vector<std::byte>> bytes;
    for (const ArrayShape& made : merge_builder->arrays()) {
        ArrayShape whole = made;
        std::vector<std::byte> contents;
        const bool new_only = std::string(made.name) == "vectors" ||
                              (std::string(made.name) == array_neighbours && made.rows == 6000 - half);
        if (new_only) {
            const std::vector<ArrayShape> before = old.builder->arrays();
            contents = old.contents(*find_array(before, made.name));
            whole.rows += half;
        }
        std::vector<std::byte> added(made.bytes());
        merge_builder->read(made.name, 0, added);
        contents.insert(contents.end(), added.begin(), added.end());
        arrays.push_back(whole);
        bytes.push_back(contents);
    }
    const auto searcher = make_graph_searcher(old.shape, merge_builder->effective_options(), arrays);
    for (std::size_t i = 0; i < arrays.size(); ++i) searcher->write(arrays[i].name, 0, bytes[i]);
    searcher->finish_load(pool);
    const std::vector<float> queries = clustered_bits(60, 300, 16, 40, 0.2, 0.3);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = 60;
    batch.k = 10;
    batch.effort = 256;
    std::vector<std::vector<RowResult>> found;
    searcher->search(batch, found, pool);
    double sum = 0;
    for (std::size_t q = 0; q < 60; ++q)
        sum += recall_of(found[q], brute_force(GetParam(), queries.data() + q * words, rows, words, 10));
    EXPECT_GE(sum / 60, 0.97);
}

INSTANTIATE_TEST_SUITE_P(Bits, GraphOfBits, testing::ValuesIn(bit_metrics));

TEST(GraphBits, OtherFormsAreRefused)
{
    const IndexShape shape{Method::graph, ElementType::bit, static_cast<std::uint8_t>(Metric::hamming), {}, 4, 0};
    EXPECT_THROW(make_graph_builder(shape, make_list({{"vectors", 1}})), BadRequest);
    EXPECT_THROW(make_graph_builder(shape, make_list({{"vectors", 2}})), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test
