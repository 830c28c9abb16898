// The index method matchcount over vectors: candidates by match counts, compared with plain counts; merges and recall.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::test::matchcount_vectors_test
{
namespace
{

using matchcount::VectorHashes;

constexpr std::size_t rows = 3000;
constexpr std::size_t width = 20;
constexpr double from_front = -std::numeric_limits<double>::infinity();

struct Case {
    Metric metric;
    ParameterList options;
    std::string name;
};

std::vector<Case> cases()
{
    return {{Metric::l2, make_list({{"hashes", 64}}), "l2"},
            {Metric::l2, make_list({{"hashes", 20}, {"buckets", 3}}), "l2, few"},
            {Metric::l1, make_list({{"hashes", 64}}), "l1"},
            {Metric::l1, make_list({{"hashes", 64}, {"lsh", 1}}), "l1, random binning"},
            {Metric::cosine, make_list({{"hashes", 100}}), "cosine"}};
}

std::vector<float> rows_of(const Case& tested, std::size_t count, unsigned seed)
{
    std::vector<float> made = random_rows(count, width, seed);
    if (tested.metric == Metric::cosine) normalise_rows(made, width);
    return made;
}

Index index_of(const Case& tested, const std::vector<float>& vectors, ThreadPool& pool)
{
    return Index(Method::matchcount, tested.metric, width, vectors, tested.options, pool);
}

// The functions of an index, from its arrays.
VectorHashes hashes_of(const Index& index)
{
    VectorHashes hashes(matchcount::hash_form(index.shape, index.builder->effective_options()), width);
    index.builder->read(matchcount::array_hashes, 0, std::as_writable_bytes(hashes.parameters()));
    return hashes;
}

// The number of equal bytes, or bits, of two signatures.
std::size_t plain_count(const VectorHashes& hashes, const std::uint8_t* a, const std::uint8_t* b)
{
    std::size_t equal = 0;
    const bool bits = hashes.form().family == matchcount::HashFamily::signs;
    for (std::size_t f = 0; f < hashes.form().functions; ++f)
        equal += bits ? (a[f / 8] >> f % 8 & 1) == (b[f / 8] >> f % 8 & 1) : a[f] == b[f];
    return equal;
}

// Live rows by match count, largest first, ties by row.
std::vector<std::uint32_t> by_count(const VectorHashes& hashes, const float* query, const std::vector<float>& vectors,
                                    RowBitmap dead)
{
    std::vector<std::uint8_t> asked(hashes.signature_bytes());
    hashes.sign(query, asked.data());
    std::vector<std::pair<std::size_t, std::uint32_t>> counted;
    for (std::uint32_t row = 0; row < vectors.size() / width; ++row) {
        if (bit_is_set(dead, row)) continue;
        std::vector<std::uint8_t> signature(hashes.signature_bytes());
        hashes.sign(vectors.data() + row * width, signature.data());
        counted.emplace_back(hashes.form().functions - plain_count(hashes, asked.data(), signature.data()), row);
    }
    std::sort(counted.begin(), counted.end());
    std::vector<std::uint32_t> order;
    for (const auto& [missed, row] : counted) order.push_back(row);
    return order;
}

// The k nearest of the first candidates.
std::vector<std::uint32_t> nearest_of(const Case& tested, const float* query, const std::vector<float>& vectors,
                                      const std::vector<std::uint32_t>& order, std::size_t candidates, std::size_t k)
{
    std::vector<RowResult> all;
    for (std::size_t i = 0; i < std::min(candidates, order.size()); ++i)
        all.push_back({canonical_distance(tested.metric, query, vectors.data() + order[i] * width, width), order[i]});
    std::sort(all.begin(), all.end(), comes_before);
    all.resize(std::min(k, all.size()));
    return ids(all);
}

std::vector<std::uint64_t> every_seventh()
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t row = 0; row < rows; row += 7) set_bit(dead, row);
    return dead;
}

TEST(MatchcountVectors, RankTheRowsOfLargestCount)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, rows, 1);
        const std::vector<float> queries = rows_of(tested, 6, 2);
        const Index index = index_of(tested, vectors, pool);
        const VectorHashes hashes = hashes_of(index);
        for (const std::int64_t candidates : {1, 7, 60, 500, 2999, 3000, 65536}) {
            const auto found = index.search(queries, 5, pool, {}, dead, candidates);
            for (std::size_t q = 0; q < found.size(); ++q) {
                const float* query = queries.data() + q * width;
                const auto order = by_count(hashes, query, vectors, dead);
                const auto compared = static_cast<std::size_t>(std::max<std::int64_t>(candidates, 5));
                ASSERT_EQ(ids(found[q]), nearest_of(tested, query, vectors, order, compared, 5))
                    << tested.name << ", " << candidates << " candidates";
            }
        }
    }
}

// One query spread over threads, a batch, and the setting find the same; with all rows as candidates, or without a
// calibration, all of the nearest.
TEST(MatchcountVectors, DependOnNeitherThreadsNorBatches)
{
    ThreadPool pool(3);
    ThreadPool alone(1);
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, 40000, 3);
        const std::vector<float> queries = rows_of(tested, 20, 4);
        const Index index = index_of(tested, vectors, pool);
        const auto batch = index.search(queries, 10, pool, {}, {}, 200);
        const auto by_setting = index.search(queries, 10, alone, make_list({{"candidates", 200}}), {}, 50);
        const auto whole = index.search(queries, 10, pool);
        for (std::size_t q = 0; q < batch.size(); ++q) {
            const std::vector<float> query(queries.begin() + static_cast<std::ptrdiff_t>(q * width),
                                           queries.begin() + static_cast<std::ptrdiff_t>((q + 1) * width));
            const auto one = index.search(query, 10, pool, {}, {}, 200);
            ASSERT_EQ(ids(one[0]), ids(batch[q])) << tested.name;
            ASSERT_EQ(ids(by_setting[q]), ids(batch[q])) << tested.name;
            if (q >= 3) continue;
            ASSERT_EQ(ids(whole[q]), ids(brute_force(tested.metric, query.data(), vectors, width, 10)));
        }
    }
}

// The result of a rung is that of a search of its own.
TEST(MatchcountVectors, RungsAreSearches)
{
    ThreadPool pool(2);
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, rows, 5);
        const std::vector<float> queries = rows_of(tested, 4, 6);
        const Index index = index_of(tested, vectors, pool);
        const std::vector<SearchRung> rungs{{30, 10, 0}, {400, 100, 0}, {5000, 1000, 0}};
        SearchBatch batch;
        batch.queries = queries;
        batch.count = 4;
        RungResults results;
        index.searcher->search_rungs(batch, rungs, results, pool);
        for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
            const auto own = index.search(queries, rungs[rung].k, pool, {}, {}, rungs[rung].effort);
            for (std::size_t q = 0; q < 4; ++q) ASSERT_EQ(ids(results[rung][q]), ids(own[q])) << tested.name;
        }
    }
}

// Values are minus the share of the functions that collide, and rows without a collision are left out.
TEST(MatchcountVectors, EstimateSimilarities)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, rows, 14);
        const std::vector<float> queries = rows_of(tested, 3, 15);
        const Index index = index_of(tested, vectors, pool);
        const VectorHashes hashes = hashes_of(index);
        std::vector<std::uint8_t> asked(hashes.signature_bytes());
        std::vector<std::uint8_t> signature(hashes.signature_bytes());
        for (const std::uint32_t k : {20U, static_cast<std::uint32_t>(rows)}) {
            const auto found = index.search(queries, k, pool, make_list({{setting_estimate, 1}}), dead, 10);
            for (std::size_t q = 0; q < found.size(); ++q) {
                const float* query = queries.data() + q * width;
                hashes.sign(query, asked.data());
                std::vector<RowResult> expected;
                for (const std::uint32_t row : by_count(hashes, query, vectors, dead)) {
                    hashes.sign(vectors.data() + row * width, signature.data());
                    const auto count = static_cast<double>(plain_count(hashes, asked.data(), signature.data()));
                    if (count > 0 && expected.size() < k)
                        expected.push_back({-count / static_cast<double>(hashes.form().functions), row});
                }
                ASSERT_EQ(ids(found[q]), ids(expected)) << tested.name;
                for (std::size_t i = 0; i < expected.size(); ++i)
                    ASSERT_EQ(found[q][i].distance, expected[i].distance) << tested.name;
            }
        }
    }
}

TEST(MatchcountVectors, ContinueInOrderOfDistance)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, rows, 7);
        const std::vector<float> query = rows_of(tested, 1, 8);
        const Index index = index_of(tested, vectors, pool);
        SearchBatch batch;
        batch.queries = query;
        batch.count = 1;
        batch.k = 700;
        batch.dead = dead;
        std::vector<std::uint32_t> all;
        RowResult last{from_front, 0};
        for (;;) {
            std::vector<RowResult> some;
            index.searcher->search_exact(batch, last.distance, last.row, some, pool);
            if (some.empty()) break;
            for (const RowResult& result : some) all.push_back(result.row);
            last = some.back();
        }
        EXPECT_EQ(all, ids(brute_force(tested.metric, query.data(), vectors, width, rows, dead))) << tested.name;
    }
}

std::vector<std::byte> array_of(const Builder& builder, const char* name)
{
    const std::vector<ArrayShape> arrays = builder.arrays();
    const ArrayShape* array = find_array(arrays, name);
    std::vector<std::byte> bytes(array != nullptr ? array->bytes() : 0);
    if (!bytes.empty()) builder.read(name, 0, bytes);
    return bytes;
}

void give_whole(Builder& builder, const ArrayShape& shape, std::span<const std::byte> bytes)
{
    // Pieces end within rows.
    for (std::size_t at = 0; at < bytes.size(); at += 1003)
        builder.give(shape, at, bytes.subspan(at, std::min<std::size_t>(1003, bytes.size() - at)));
}

const BuildProgress silent{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};

// New rows get the signatures that they would have had in the build.
TEST(MatchcountVectors, MergesSignByTheFunctionsOfTheIndex)
{
    ThreadPool pool(2);
    for (const Case& tested : cases()) {
        const std::vector<float> vectors = rows_of(tested, rows, 9);
        const Index index = index_of(tested, vectors, pool);
        const auto merge = matchcount_method().make_merge_builder(index.shape, index.builder->effective_options());
        const std::vector<ArrayShape> arrays = index.builder->arrays();
        const std::vector<std::byte> hashes = array_of(*index.builder, matchcount::array_hashes);
        RowBuffer again(index.shape);
        std::vector<Tid> tids;
        for (std::uint32_t i = 0; i < rows; ++i) tids.push_back({i, 1, 0});
        again.append(tids, vectors);
        EXPECT_THROW(merge->run(again, silent, pool), BadRequest);
        EXPECT_THROW(give_whole(*merge, *find_array(arrays, array_vectors), array_of(*index.builder, array_vectors)),
                     BadRequest);
        give_whole(*merge, *find_array(arrays, matchcount::array_hashes), hashes);
        merge->run(again, silent, pool);
        EXPECT_EQ(array_of(*merge, matchcount::array_signatures),
                  array_of(*index.builder, matchcount::array_signatures));
        EXPECT_EQ(array_of(*merge, array_vectors), array_of(*index.builder, array_vectors));
        EXPECT_TRUE(array_of(*merge, matchcount::array_hashes).empty());
    }
}

// The curve is what searches find, up to its margin; a calibration of the stored rows gives about the same.
TEST(MatchcountVectors, TellTheirRecall)
{
    ThreadPool pool(2);
    for (const Case& tested : cases()) {
        SCOPED_TRACE(tested.name);
        // Queries of the same clusters as the rows.
        std::vector<float> vectors = rows_of(tested, rows + 200, 10);
        const std::vector<float> queries(vectors.begin() + rows * width, vectors.end());
        vectors.resize(rows * width);
        const Index index = index_of(tested, vectors, pool);
        const Calibration curve = index.builder->calibration();
        ASSERT_GT(curve.count, 5U);
        EXPECT_EQ(curve.points[curve.count - 1].effort, static_cast<std::int64_t>(rows));
        EXPECT_EQ(curve.points[curve.count - 1].recall[1], 1);

        const EffortChoice choice = choose_effort(curve, 10, 0.9);
        ASSERT_TRUE(choice.reached);
        const auto found = index.search(queries, 10, pool, {}, {}, choice.effort);
        double share = 0;
        for (std::size_t q = 0; q < found.size(); ++q)
            share += recall(found[q], brute_force(tested.metric, queries.data() + q * width, vectors, width, 10));
        EXPECT_GT(share / static_cast<double>(found.size()), 0.87);

        const auto calibrator = matchcount_method().make_calibrator(index.shape, index.builder->effective_options());
        const std::vector<ArrayShape> arrays = index.builder->arrays();
        std::vector<std::uint32_t> sample;
        std::vector<float> sampled;
        for (std::uint32_t row = 5; row < rows; row += 10) {
            sample.push_back(row);
            sampled.insert(sampled.end(), vectors.begin() + row * width, vectors.begin() + (row + 1) * width);
        }
        give_whole(*calibrator, *find_array(arrays, matchcount::array_hashes),
                   array_of(*index.builder, matchcount::array_hashes));
        give_whole(*calibrator, make_array_shape(array_calib_row, ArrayType::u32, sample.size(), 1),
                   std::as_bytes(std::span(sample)));
        give_whole(*calibrator, make_array_shape(array_calib_query, ArrayType::u8, sample.size(), 4 * width),
                   std::as_bytes(std::span(sampled)));
        give_whole(*calibrator, *find_array(arrays, array_vectors), array_of(*index.builder, array_vectors));
        RowBuffer none(index.shape);
        calibrator->run(none, silent, pool);
        const Calibration again = calibrator->calibration();
        ASSERT_EQ(again.count, curve.count);
        for (std::uint32_t i = 0; i < curve.count; ++i) {
            EXPECT_EQ(again.points[i].effort, curve.points[i].effort);
            EXPECT_NEAR(again.points[i].recall[1], curve.points[i].recall[1], 0.1);
        }
    }
}

TEST(MatchcountVectors, TakeFewRows)
{
    ThreadPool pool(1);
    for (const Case& tested : cases()) {
        for (const std::size_t count : {0U, 1U, 2U, 5U}) {
            const std::vector<float> vectors = rows_of(tested, count, 12);
            const std::vector<float> query = rows_of(tested, 1, 13);
            const Index index = index_of(tested, vectors, pool);
            EXPECT_EQ(ids(index.search(query, 10, pool)[0]),
                      ids(brute_force(tested.metric, query.data(), vectors, width, 10)));
        }
        // Rows that are all equal have no width.
        const Index equal = index_of(tested, std::vector<float>(300 * width, 0.5F), pool);
        EXPECT_EQ(equal.search(std::vector<float>(width, 0.5F), 300, pool)[0].size(), 300U);
    }
}

// Single precision holds the distance of no two rows, of which the width of the functions is chosen.
TEST(MatchcountVectors, TakeRowsThatLieTooFarApart)
{
    ThreadPool pool(2);
    for (const Case& tested : cases()) {
        if (tested.metric == Metric::cosine) continue;
        std::vector<float> vectors = random_rows(300, width, 7);
        for (float& value : vectors) value = std::copysign(3e38F, value);
        const Index index = index_of(tested, vectors, pool);
        const std::vector<float> query(vectors.begin(), vectors.begin() + width);
        EXPECT_EQ(index.search(query, 10, pool)[0].size(), 10U) << tested.name;
    }
}

TEST(MatchcountVectors, RefuseOtherRowsAndOptions)
{
    const auto shape = [](Metric metric) {
        return Index::shape_of(Method::matchcount, metric, width, ElementType::float32);
    };
    const auto form = [&](Metric metric, std::initializer_list<std::pair<const char*, std::int64_t>> options) {
        return matchcount::hash_form(shape(metric), make_list(options));
    };
    EXPECT_THROW(form(Metric::inner_product, {}), BadRequest);
    EXPECT_THROW(form(Metric::l2, {{"lsh", 1}}), BadRequest);
    EXPECT_THROW(form(Metric::cosine, {{"buckets", 9}}), BadRequest);
    EXPECT_THROW(form(Metric::l2, {{"hashes", 7}}), BadRequest);
    EXPECT_THROW(form(Metric::l2, {{"hashes", 100}, {"delta", 50000}}), BadRequest);
    EXPECT_THROW(form(Metric::l2, {{"epsilon", 20000}, {"delta", 10000}}), BadRequest);
    EXPECT_EQ(form(Metric::l2, {}).functions, 226U);
    EXPECT_EQ(form(Metric::l2, {{"epsilon", 100000}, {"delta", 100000}}).functions, 56U);
    EXPECT_EQ(form(Metric::l1, {{"lsh", 1}}).family, matchcount::HashFamily::binning);
    EXPECT_EQ(form(Metric::l1, {{"buckets", 255}}).buckets, 255U);
}

}  // namespace
}  // namespace pgwarp::test::matchcount_vectors_test
