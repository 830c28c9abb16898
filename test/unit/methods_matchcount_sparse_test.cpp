// The index method matchcount over sparse vectors: answers compared with the definitions of the distances, in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "list_fixture.h"
#include "methods/arrays.h"
#include "methods/matchcount/sparse_score.h"
#include "methods/matchcount/sparse_search.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "protocol/search_bound.h"

namespace pgwarp::test
{
namespace
{

using matchcount::SparseIndex;
using matchcount::SparseQuery;
using matchcount::SparseScore;
using Sparse = std::map<std::uint32_t, float>;  // values by index

constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

OwnedRows rows_of(const std::vector<Sparse>& vectors)
{
    OwnedRows rows;
    for (const Sparse& vector : vectors) {
        std::vector<std::uint32_t> indices;
        std::vector<float> values;
        for (const auto& [index, value] : vector) {
            indices.push_back(index);
            values.push_back(value);
        }
        const float none = 0;
        const std::uint64_t offsets[2] = {0, indices.size()};
        RowView row;
        row.count = 1;
        row.offsets = offsets;
        row.words = indices.data();
        row.weights = values.empty() ? &none : values.data();
        rows.append(row);
    }
    return rows;
}

SparseView view_of(const RowView& rows, std::size_t row)
{
    return {rows.list(row).data(), rows.list_weights(row).data(), rows.list(row).size()};
}

// The distance by its definition, over the union of the indices in ascending order.
double plain_distance(Metric metric, const Sparse& a, const Sparse& b)
{
    std::map<std::uint32_t, std::pair<double, double>> both;
    for (const auto& [index, value] : a) both[index].first = value;
    for (const auto& [index, value] : b) both[index].second = value;
    double dot = 0;
    double squares_a = 0;
    double squares_b = 0;
    double squared = 0;
    double l1 = 0;
    for (const auto& [index, values] : both) {
        const auto [x, y] = values;
        dot += x * y;
        squares_a += x * x;
        squares_b += y * y;
        squared += (x - y) * (x - y);
        l1 += std::fabs(x - y);
    }
    switch (metric) {
        case Metric::l2:
            return std::sqrt(squared);
        case Metric::l1:
            return l1;
        case Metric::cosine:
            return 1 - std::clamp(dot / std::sqrt(squares_a * squares_b), -1.0, 1.0);
        default:
            return -dot;
    }
}

// All live rows that have a distance, in order of (distance, row).
std::vector<RowResult> all_in_order(Metric metric, const std::vector<Sparse>& vectors, const Sparse& query,
                                    RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < vectors.size(); ++i) {
        const double distance = plain_distance(metric, query, vectors[i]);
        if (!bit_is_set(dead, i) && !std::isnan(distance)) all.push_back({distance, i});
    }
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

void expect_equal(const std::vector<RowResult>& found, std::span<const RowResult> wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
    }
}

// Small numbers of few values make ties; others have every size.
float random_value(std::mt19937_64& random, bool ties)
{
    const int sign = random() % 4 == 0 ? -1 : 1;
    if (ties) return static_cast<float>(sign * static_cast<int>(1 + random() % 4)) / 4;
    const double uniform = static_cast<double>(random() % 1000003 + 1) / 1000003;
    return static_cast<float>(sign * std::ldexp(uniform, static_cast<int>(random() % 20) - 10));
}

// Indices follow a law by which the first are frequent.
Sparse random_sparse(std::mt19937_64& random, std::size_t most, std::uint64_t universe, bool ties)
{
    Sparse vector;
    for (std::size_t left = random() % (most + 1); left > 0; --left) {
        const std::uint64_t bound = 1 + random() % universe;
        vector[static_cast<std::uint32_t>(random() % bound)] = random_value(random, ties);
    }
    return vector;
}

// Searches by random k, cursors and bounds, many of which are distances of rows.
void expect_right(const SparseIndex& index, const SparseView& vector, const std::vector<RowResult>& all, RowBitmap dead,
                  std::mt19937_64& random, ThreadPool& pool)
{
    SparseQuery query;
    query.vector = vector;
    query.dead = dead;
    query.k = random() % 4 == 0 ? 65536 : static_cast<std::uint32_t>(random() % 12);
    const auto random_distance = [&] {
        return all.empty() || random() % 8 == 0 ? static_cast<double>(random() % 9) - 4
                                                : all[random() % all.size()].distance + (random() % 8 == 0 ? 0.25 : 0);
    };
    if (random() % 2 == 0) query.after = {random_distance(), static_cast<std::uint32_t>(random() % 24)};
    if (random() % 2 == 0) query.within = random_distance();
    std::vector<RowResult> wanted;
    for (const RowResult& row : all)
        if (comes_before(query.after, row) && row.distance <= query.within && wanted.size() < query.k)
            wanted.push_back(row);
    expect_equal(search_sparse(index, query, pool), wanted);
}

class MatchcountSparse : public testing::TestWithParam<Metric>
{
protected:
    ThreadPool pool{3};
};

TEST_P(MatchcountSparse, RandomVectorsAreAsDefined)
{
    std::mt19937_64 random(1);
    for (int number = 0; number < 600; ++number) {
        const std::uint64_t universe = number % 3 == 0 ? 1000000000 : 1 + random() % 20;
        const bool ties = random() % 2 == 0;
        std::vector<Sparse> vectors(random() % 40);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 40 : 7, universe, ties);
        const OwnedRows rows = rows_of(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        for (int i = 0; i < 8; ++i) {
            const Sparse query = random_sparse(random, 12, universe, ties);
            const OwnedRows asked = rows_of({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query, dead);
            for (int j = 0; j < 6; ++j)
                ASSERT_NO_FATAL_FAILURE(
                    expect_right(index, view_of(asked.view(), 0), all, dead, random, caller_alone()))
                    << "index " << number;
        }
    }
}

// Many slices, with terms that have columns, on several threads.
TEST_P(MatchcountSparse, RowsOfManySlicesAreAsDefined)
{
    std::mt19937_64 random(2);
    for (const bool ties : {false, true}) {
        std::vector<Sparse> vectors(40000);
        for (Sparse& vector : vectors) vector = random_sparse(random, random() % 8 == 0 ? 80 : 30, 300, ties);
        const OwnedRows rows = rows_of(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        ASSERT_NE(index.term(0).column, nullptr);
        ASSERT_EQ(index.term(299).column, nullptr);
        std::vector<std::uint64_t> dead((vectors.size() + 63) / 64);
        for (std::uint64_t& word : dead) word = random() & random() & random();
        for (int i = 0; i < 4; ++i) {
            const Sparse query = random_sparse(random, i % 4 == 0 ? 60 : 8, 300, ties);
            const OwnedRows asked = rows_of({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query, dead);
            for (int j = 0; j < 4; ++j)
                ASSERT_NO_FATAL_FAILURE(expect_right(index, view_of(asked.view(), 0), all, dead, random,
                                                     j % 2 == 0 ? pool : caller_alone()))
                    << "query " << i;
        }
    }
}

// Scores beyond float32, and those that vanish in it.
TEST_P(MatchcountSparse, ValuesOfEverySizeAreAsDefined)
{
    std::mt19937_64 random(3);
    for (const float factor : {1e38F, 1e25F, 1e15F, 1e-15F, 1e-25F, 1e-38F, 1e-43F}) {
        std::vector<Sparse> vectors(300);
        for (Sparse& vector : vectors) {
            vector = random_sparse(random, 12, 40, true);
            for (auto& [index, value] : vector) value *= random() % 2 == 0 ? factor : 1;
        }
        const OwnedRows rows = rows_of(vectors);
        const SparseIndex index(GetParam(), rows.view(), pool);
        for (int i = 0; i < 20; ++i) {
            const Sparse query = i % 2 == 0 ? vectors[random() % 300] : random_sparse(random, 12, 40, true);
            const OwnedRows asked = rows_of({query});
            const std::vector<RowResult> all = all_in_order(GetParam(), vectors, query);
            for (int j = 0; j < 6; ++j)
                ASSERT_NO_FATAL_FAILURE(expect_right(index, view_of(asked.view(), 0), all, {}, random, caller_alone()))
                    << factor;
        }
    }
}

// The bound of errors holds, and is not so wide that it proves nothing: few rows are compared.
TEST_P(MatchcountSparse, BoundsOfScoresAreNarrow)
{
    std::mt19937_64 random(4);
    std::vector<Sparse> vectors(3000);
    for (Sparse& vector : vectors) vector = random_sparse(random, 40, 100, false);
    vectors[0] = {{1, 1.0F}};
    const OwnedRows rows = rows_of(vectors);
    const SparseIndex index(GetParam(), rows.view(), pool);
    const SparseScore score(index, view_of(rows.view(), 1));
    ASSERT_TRUE(score.in_range());
    const std::vector<RowResult> all = all_in_order(GetParam(), vectors, vectors[1]);
    const double whole = score.most_score(all.front().distance) - score.most_score(all.back().distance);
    const double width = score.most_score(all.front().distance) - score.least_score(all.front().distance);
    EXPECT_GT(width, 0);
    EXPECT_LT(width, whole / 50);
}

TEST_P(MatchcountSparse, ThreadsMakeTheSameIndex)
{
    std::mt19937_64 random(5);
    std::vector<Sparse> vectors(20000);
    for (Sparse& vector : vectors) vector = random_sparse(random, 80, 3000, false);
    const OwnedRows rows = rows_of(vectors);
    const SparseIndex one(GetParam(), rows.view(), caller_alone());
    const SparseIndex many(GetParam(), rows.view(), pool);
    std::size_t postings = 0;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        const matchcount::SparseTerm a = one.term(i);
        const matchcount::SparseTerm b = many.term(i);
        postings += a.rows.size();
        ASSERT_TRUE(std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end()));
        ASSERT_TRUE(std::equal(a.values, a.values + a.rows.size(), b.values));
        ASSERT_EQ(a.scale, b.scale);
        for (std::size_t at = 0; at < a.rows.size(); ++at) {
            if (a.column != nullptr) {
                ASSERT_EQ(a.column[a.rows[at]], a.values[at]);
            }
        }
    }
    EXPECT_GT(postings, 600000U);
}

// As the engine loads and searches it.
class SparseIndexes : public testing::TestWithParam<Metric>
{
protected:
    static constexpr std::size_t row_count = 500;

    SparseIndexes()
        : rows(random_lists(row_count, 12, 60, true, 8)),
          queries(random_lists(25, 12, 60, true, 9)),
          index(Index::shape_of(Method::matchcount, GetParam(), 60, ElementType::sparse), rows.view(), {}, pool)
    {
        batch.lists = queries.view();
        batch.count = queries.count();
        batch.k = 20;
    }
    std::vector<RowResult> in_order(std::size_t query, std::size_t most = row_count, RowBitmap dead = {}) const
    {
        std::vector<double> distances(row_count);
        index.searcher->compare_rows(queries.view().row(query), rows.view(), distances);
        std::vector<RowResult> all;
        for (std::uint32_t i = 0; i < row_count; ++i)
            if (!bit_is_set(dead, i) && !std::isnan(distances[i])) all.push_back({distances[i], i});
        std::sort(all.begin(), all.end(), comes_before);
        all.resize(std::min(all.size(), most));
        return all;
    }
    std::vector<std::vector<RowResult>> search()
    {
        std::vector<std::vector<RowResult>> results;
        index.searcher->search(batch, results, pool);
        return results;
    }

    ThreadPool pool{2};
    OwnedRows rows;
    OwnedRows queries;
    Index index;
    SearchBatch batch;
};

TEST_P(SparseIndexes, SearchInBatches)
{
    std::vector<std::uint64_t> dead((row_count + 63) / 64, 0x8000000000010101U);
    batch.dead = dead;
    const auto results = search();
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, dead)));
    batch.lists = queries.view().row(3);
    batch.count = 1;
    EXPECT_NO_FATAL_FAILURE(expect_equal(search()[0], in_order(3, batch.k, dead)));
    batch.k = 0;
    EXPECT_TRUE(search()[0].empty());
}

TEST_P(SparseIndexes, FindTheNearestOfCertainRows)
{
    std::vector<std::uint64_t> others((row_count + 63) / 64, ~std::uint64_t{0});
    std::vector<std::uint32_t> certain;
    for (std::uint32_t row = row_count - 1; row < row_count; row -= 7) {
        certain.push_back(row);
        others[row / 64] &= ~(std::uint64_t{1} << row % 64);
    }
    const std::vector<RowList> lists(batch.count, RowList(certain));
    std::vector<std::vector<RowResult>> results;
    index.searcher->search_among(batch, lists, before_all, results, pool);
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, others)));
}

TEST_P(SparseIndexes, FindTheRowsWithinABound)
{
    for (const double within : {-3.0, 0.0, 0.5, 1.0, 4.0, 12.0}) {
        set_within(&batch.settings, within);
        batch.k = row_count;
        const auto results = search();
        for (std::size_t q = 0; q < batch.count; ++q) {
            std::vector<RowResult> wanted = in_order(q);
            std::erase_if(wanted, [within](const RowResult& row) { return row.distance > within; });
            ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], wanted)) << within;
        }
    }
}

TEST_P(SparseIndexes, ContinueUntilAllRowsWereOffered)
{
    for (const std::uint32_t k : {1U, 7U, 64U}) {
        SearchBatch one = batch;
        one.lists = queries.view().row(k % 25);
        one.count = 1;
        one.k = k;
        std::vector<RowResult> all;
        RowResult last = before_all;
        while (true) {
            std::vector<RowResult> page;
            index.searcher->search_exact(one, last.distance, last.row, page, pool);
            if (page.empty()) break;
            all.insert(all.end(), page.begin(), page.end());
            last = page.back();
        }
        ASSERT_NO_FATAL_FAILURE(expect_equal(all, in_order(k % 25)));
    }
}

TEST_P(SparseIndexes, EndWhenCancelled)
{
    CancelToken cancel;
    cancel.cancel();
    batch.cancel = &cancel;
    EXPECT_THROW(search(), Cancelled);
}

TEST_P(SparseIndexes, RefuseMalformedArrays)
{
    const std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, 2, 1),
                                            make_array_shape(array_list_words, ArrayType::u32, 2, 1),
                                            make_array_shape(array_list_weights, ArrayType::f32, 2, 1)};
    const auto load = [&](const std::vector<std::uint32_t>& words, const std::vector<float>& weights) {
        const auto searcher = find_method(Method::matchcount)->make_searcher(index.shape, {}, arrays);
        const std::uint64_t offsets[2] = {0, 2};
        searcher->write(array_list_offsets, 0, std::as_bytes(std::span(offsets)));
        searcher->write(array_list_words, 0, std::as_bytes(std::span(words)));
        searcher->write(array_list_weights, 0, std::as_bytes(std::span(weights)));
        searcher->finish_load(pool);
    };
    EXPECT_NO_THROW(load({3, 59}, {1, 2}));
    EXPECT_THROW(load({3, 60}, {1, 2}), BadRequest);
    EXPECT_THROW(load({3, 3}, {1, 2}), BadRequest);
    EXPECT_THROW(load({3, 59}, {1, std::numeric_limits<float>::infinity()}), BadRequest);
    EXPECT_THROW(load({3, 59}, {std::numeric_limits<float>::quiet_NaN(), 2}), BadRequest);
}

std::string name_of_metric(const testing::TestParamInfo<Metric>& info)
{
    for (const MetricNames& names : metric_names())
        if (names.metric == info.param) return names.function;
    return "unknown";
}

INSTANTIATE_TEST_SUITE_P(Metrics, MatchcountSparse, testing::ValuesIn(metrics), name_of_metric);
INSTANTIATE_TEST_SUITE_P(Metrics, SparseIndexes, testing::ValuesIn(metrics), name_of_metric);

}  // namespace
}  // namespace pgwarp::test
