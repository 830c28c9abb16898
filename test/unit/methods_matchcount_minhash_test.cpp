// The index method matchcount over sets with signatures: candidates by match counts, compared with plain counts and
// distances; merges and recall.
#include <gtest/gtest.h>

#include <limits>

#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/set_hashes.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "protocol/calibration.h"
#include "protocol/similarity.h"
#include "protocol/standing_out.h"

namespace pgwarp::test::matchcount_minhash_test
{
namespace
{

using matchcount::SetHashes;
using Sets = std::vector<Set>;

constexpr std::size_t rows = 1500;
constexpr double from_front = -std::numeric_limits<double>::infinity();

// Groups of sets that have most of their elements in common, between sets that are empty.
Sets grouped_sets(std::size_t count, unsigned seed)
{
    std::mt19937_64 random(seed);
    Sets sets(count);
    Sets centres(40);
    std::mt19937_64 of_centres(1);  // the same for rows and queries
    for (Set& centre : centres) centre = random_set(of_centres, 60, 5000, true);
    for (Set& set : sets) {
        if (random() % 50 == 0) continue;
        const unsigned kept = 2 + random() % 7;
        for (const std::uint64_t element : centres[random() % centres.size()])
            if (random() % 8 < kept) set.insert(element);
        set.merge(random_set(random, 6, 5000, true));
    }
    return sets;
}

IndexShape shape_of(Metric metric = Metric::set_jaccard)
{
    return Index::shape_of(Method::matchcount, metric, 0, ElementType::minhash_set);
}

Index index_of(const Sets& sets, std::int64_t hashes, ThreadPool& pool)
{
    return Index(shape_of(), rows_of_parts(sets).view(), make_list({{"hashes", hashes}}), pool);
}

using Results = std::vector<std::vector<RowResult>>;

Results search(const Index& index, const Sets& queries, std::uint32_t k, ThreadPool& pool, std::int64_t effort = 0,
               RowBitmap dead = {}, const ParameterList& settings = {})
{
    const OwnedRows words = rows_of_parts(queries);
    SearchBatch batch;
    batch.lists = words.view();
    batch.count = queries.size();
    batch.k = k;
    batch.effort = effort;
    batch.dead = dead;
    batch.settings = settings;
    Results results;
    index.searcher->search(batch, results, pool);
    return results;
}

std::vector<RowResult> by_distance(const Set& query, const Sets& sets, RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t row = 0; row < sets.size(); ++row)
        if (!bit_is_set(dead, row)) all.push_back({plain_set_jaccard(query, sets[row]), row});
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

struct Counted {
    std::uint32_t missed;  // functions on which the row and the query differ
    std::uint32_t row;
    friend auto operator<=>(const Counted&, const Counted&) = default;
};

// Live rows by match count, largest first, ties by row.
std::vector<Counted> by_count(const SetHashes& hashes, const Set& query, const Sets& sets, RowBitmap dead)
{
    std::vector<std::uint8_t> asked(hashes.signature_bytes());
    std::vector<std::uint8_t> signature(hashes.signature_bytes());
    hashes.sign(words_of(query), asked.data());
    std::vector<Counted> counted;
    for (std::uint32_t row = 0; row < sets.size(); ++row) {
        if (bit_is_set(dead, row)) continue;
        hashes.sign(words_of(sets[row]), signature.data());
        Counted found{0, row};
        for (std::size_t f = 0; f < asked.size(); ++f) found.missed += asked[f] != signature[f];
        counted.push_back(found);
    }
    std::sort(counted.begin(), counted.end());
    return counted;
}

std::vector<std::uint64_t> every_seventh()
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t row = 0; row < rows; row += 7) set_bit(dead, row);
    return dead;
}

void expect_equal(const std::vector<RowResult>& found, const std::vector<RowResult>& expected)
{
    ASSERT_EQ(ids(found), ids(expected));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i].distance, expected[i].distance);
}

TEST(MatchcountMinhash, RanksTheRowsOfLargestCount)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    const Sets sets = grouped_sets(rows, 2);
    Sets queries = grouped_sets(4, 3);
    queries.push_back({});
    for (const std::int64_t functions : {8, 50, 226}) {
        const Index index = index_of(sets, functions, pool);
        const SetHashes hashes(static_cast<std::size_t>(functions));
        for (const std::int64_t candidates : {1, 7, 60, 500, 1499, 1500, 65536}) {
            const Results found = search(index, queries, 5, pool, candidates, dead);
            for (std::size_t q = 0; q < queries.size(); ++q) {
                const auto counted = by_count(hashes, queries[q], sets, dead);
                const auto compared = static_cast<std::size_t>(std::max<std::int64_t>(candidates, 5));
                std::vector<RowResult> expected;
                for (std::size_t i = 0; i < std::min(compared, counted.size()); ++i)
                    expected.push_back({plain_set_jaccard(queries[q], sets[counted[i].row]), counted[i].row});
                std::sort(expected.begin(), expected.end(), comes_before);
                expected.resize(5);
                SCOPED_TRACE(candidates);
                ASSERT_NO_FATAL_FAILURE(expect_equal(found[q], expected));
                // A search of its own finds the same.
                ASSERT_NO_FATAL_FAILURE(
                    expect_equal(search(index, {queries[q]}, 5, pool, candidates, dead)[0], expected));
            }
        }
    }
}

TEST(MatchcountMinhash, EstimatesSimilarities)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    const Sets sets = grouped_sets(rows, 4);
    const Sets queries = grouped_sets(3, 5);
    const Index index = index_of(sets, 100, pool);
    const SetHashes hashes(100);
    const Results found = search(index, queries, rows, pool, 10, dead, make_list({{setting_estimate, 1}}));
    for (std::size_t q = 0; q < queries.size(); ++q) {
        std::vector<RowResult> expected;
        for (const Counted& row : by_count(hashes, queries[q], sets, dead)) {
            const double similarity = hashes.similarity(100 - row.missed);
            if (similarity > 0) expected.push_back({-similarity, row.row});
        }
        ASSERT_NO_FATAL_FAILURE(expect_equal(found[q], expected));
        EXPECT_FALSE(expected.empty());
    }
}

TEST(MatchcountMinhash, ContinuesInOrderOfDistance)
{
    ThreadPool pool(2);
    const std::vector<std::uint64_t> dead = every_seventh();
    const Sets sets = grouped_sets(rows, 6);
    const Index index = index_of(sets, 20, pool);
    const Set asked = grouped_sets(2, 7)[1];
    const OwnedRows query = rows_of_parts(Sets{asked});
    SearchBatch batch;
    batch.lists = query.view();
    batch.count = 1;
    batch.k = 400;
    batch.dead = dead;
    std::vector<RowResult> all;
    for (RowResult last{from_front, 0};;) {
        std::vector<RowResult> some;
        index.searcher->search_exact(batch, last.distance, last.row, some, pool);
        if (some.empty()) break;
        all.insert(all.end(), some.begin(), some.end());
        last = some.back();
    }
    expect_equal(all, by_distance(asked, sets, dead));
}

TEST(MatchcountMinhash, ComparesRowsOutsideTheIndex)
{
    ThreadPool pool(1);
    const Index index = index_of({}, 20, pool);
    const Sets sets = grouped_sets(50, 8);
    const OwnedRows words = rows_of_parts(sets);
    std::vector<double> distances(sets.size());
    ASSERT_TRUE(index.searcher->compares_rows());
    index.searcher->compare_rows(words.view().row(3), words.view(), distances);
    for (std::size_t i = 0; i < sets.size(); ++i) EXPECT_EQ(distances[i], plain_set_jaccard(sets[3], sets[i]));
}

std::vector<std::byte> array_of(const Builder& builder, const char* name)
{
    const std::vector<ArrayShape> arrays = builder.arrays();
    const ArrayShape* array = find_array(arrays, name);
    std::vector<std::byte> bytes(array != nullptr ? array->bytes() : 0);
    if (!bytes.empty()) builder.read(name, 0, bytes);
    return bytes;
}

// New rows get the signatures that they would have had in the build.
TEST(MatchcountMinhash, MergesSignLikeBuilds)
{
    ThreadPool pool(2);
    const OwnedRows sets = rows_of_parts(grouped_sets(rows, 9));
    const Index index(shape_of(), sets.view(), {}, pool);
    const auto merge = matchcount_method().make_merge_builder(index.shape, index.builder->effective_options());
    RowBuffer again(index.shape);
    std::vector<Tid> tids;
    for (std::uint32_t i = 0; i < rows; ++i) tids.push_back({i, 1, 0});
    again.append(tids, sets.view());
    merge->run(again, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
    for (const char* name : {matchcount::array_signatures, array_list_offsets, array_list_words}) {
        EXPECT_EQ(array_of(*merge, name), array_of(*index.builder, name)) << name;
        EXPECT_FALSE(array_of(*merge, name).empty()) << name;
    }
    EXPECT_EQ(merge->calibration().count, 0U);
    EXPECT_EQ(index.builder->effective_options().get(option_hashes, 0), 226);
}

void give_whole(Builder& builder, const ArrayShape& shape, std::span<const std::byte> bytes)
{
    // Pieces end within rows, and within words.
    for (std::size_t at = 0; at < bytes.size(); at += 1003)
        builder.give(shape, at, bytes.subspan(at, std::min<std::size_t>(1003, bytes.size() - at)));
}

const BuildProgress silent{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};

// A calibration of the stored sets, of which every fifth is a query and some are dead.
Calibration calibrate(const Index& index, const OwnedRows& sets, RowBitmap dead, ParameterList* options = nullptr)
{
    const auto calibrator = matchcount_method().make_calibrator(index.shape, index.builder->effective_options());
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    std::vector<std::uint32_t> sample;
    OwnedRows queries;
    for (std::uint32_t row = 3; row < sets.count(); row += 5) {
        if (bit_is_set(dead, row)) continue;
        sample.push_back(row);
        queries.append(sets.view().row(row));
    }
    const RowView asked = queries.view();
    give_whole(*calibrator, make_array_shape(array_calib_row, ArrayType::u32, sample.size(), 1),
               std::as_bytes(std::span(sample)));
    give_whole(*calibrator, make_array_shape(array_calib_offset, ArrayType::u64, asked.count + 1, 1),
               std::as_bytes(std::span(asked.offsets, asked.count + 1)));
    give_whole(*calibrator, make_array_shape(array_calib_query, ArrayType::u32, asked.word_count(), 1),
               std::as_bytes(std::span(asked.words, asked.word_count())));
    if (!dead.empty())
        give_whole(*calibrator, make_array_shape(array_calib_dead, ArrayType::u64, dead.size(), 1),
                   std::as_bytes(dead));
    for (const char* name : {matchcount::array_signatures, array_list_offsets, array_list_words})
        give_whole(*calibrator, *find_array(arrays, name), array_of(*index.builder, name));
    RowBuffer none(index.shape);
    ThreadPool pool(1);
    calibrator->run(none, silent, pool);
    if (options != nullptr) *options = calibrator->effective_options();
    return calibrator->calibration();
}

TEST(MatchcountMinhash, IsCalibratedAgain)
{
    ThreadPool pool(2);
    const OwnedRows sets = rows_of_parts(grouped_sets(rows, 14));
    const Index index(shape_of(), sets.view(), make_list({{"hashes", 64}}), pool);
    const Calibration built = index.builder->calibration();
    ParameterList options;
    const Calibration again = calibrate(index, sets, {}, &options);
    EXPECT_NEAR(static_cast<double>(options.get(option_standing_within, 0)),
                static_cast<double>(index.builder->effective_options().get(option_standing_within, 0)), 20000);
    EXPECT_GT(options.get(option_standing_out, 0), 100);
    ASSERT_EQ(again.count, built.count);
    for (std::uint32_t i = 0; i < built.count; ++i) {
        EXPECT_EQ(again.points[i].effort, built.points[i].effort);
        EXPECT_NEAR(again.points[i].recall[1], built.points[i].recall[1], 0.1);
    }
    // All rows but a few are dead: few candidates are all.
    std::vector<std::uint64_t> dead((rows + 63) / 64, ~std::uint64_t{0});
    dead[0] = 0;
    const Calibration few = calibrate(index, sets, dead);
    EXPECT_EQ(few.points[few.count - 1].effort, 64);
    EXPECT_EQ(few.points[few.count - 1].recall[0], 1);
    // Sets of all empty sets have no words.
    const Index empty = index_of(Sets(100), 16, pool);
    const Calibration of_empty = calibrate(empty, rows_of_parts(Sets(100)), {});
    EXPECT_EQ(of_empty.points[of_empty.count - 1].recall[0], 1);
    // Any of them is nearest.
    EXPECT_GT(of_empty.points[0].recall[0], 0.9);
}

TEST(MatchcountMinhash, RefusesToBeCalibratedByOtherArrays)
{
    ThreadPool pool(1);
    const Index index = index_of(grouped_sets(30, 15), 16, pool);
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    const auto calibrator = [&] {
        return matchcount_method().make_calibrator(index.shape, index.builder->effective_options());
    };
    RowBuffer none(index.shape);
    EXPECT_THROW(calibrator()->run(none, silent, pool), BadRequest);
    EXPECT_THROW(
        give_whole(*calibrator(), *find_array(arrays, array_list_words), array_of(*index.builder, array_list_words)),
        BadRequest);
    const std::vector<std::byte> bytes(8);
    EXPECT_THROW(calibrator()->give(make_array_shape("vectors", ArrayType::f32, 2, 1), 0, bytes), BadRequest);
    EXPECT_THROW(calibrator()->give(make_array_shape("signatures", ArrayType::u8, 1, 8), 0, bytes), BadRequest);
    EXPECT_THROW(calibrator()->give(make_array_shape("calib_row", ArrayType::u32, 501, 1), 0, bytes), BadRequest);
}

// The share of the k nearest rows that stand out which a search finds, over queries that have such rows.
struct Recall {
    double share = 0;
    std::size_t queries = 0;
};

Recall recall_of_standing_out(const Index& index, const Sets& sets, const Sets& queries, std::uint32_t k,
                              std::int64_t effort, ThreadPool& pool)
{
    const auto functions = static_cast<double>(index.builder->effective_options().get(option_hashes, 0));
    const Results found = search(index, queries, k, pool, effort);
    Recall recall;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        const std::vector<RowResult> all = by_distance(queries[q], sets);
        const double first = 1 - all[all.size() * 3 / 4].distance;
        const double third = 1 - all[all.size() / 4].distance;
        const double within = 1 - standing_out_similarity(first, third, functions);
        double wanted = 0;
        double farthest = 0;
        for (std::size_t i = 0; i < k && all[i].distance <= within; ++i) {
            ++wanted;
            farthest = all[i].distance;
        }
        if (wanted == 0) continue;
        ++recall.queries;
        const auto hits =
            std::ranges::count_if(found[q], [farthest](const RowResult& row) { return row.distance <= farthest; });
        recall.share += std::min(1.0, static_cast<double>(hits) / wanted);
    }
    if (recall.queries > 0) recall.share /= static_cast<double>(recall.queries);
    return recall;
}

// The chosen effort finds what the curve tells.
TEST(MatchcountMinhash, TellsItsRecall)
{
    ThreadPool pool(2);
    const Sets sets = grouped_sets(rows, 10);
    const Sets queries = grouped_sets(200, 11);
    const Index index = index_of(sets, 64, pool);
    const Calibration curve = index.builder->calibration();
    ASSERT_GT(curve.count, 5U);
    EXPECT_EQ(curve.points[curve.count - 1].effort, static_cast<std::int64_t>(rows));
    EXPECT_EQ(curve.points[curve.count - 1].recall[1], 1);
    const EffortChoice choice = choose_effort(curve, 10, 0.9);
    ASSERT_TRUE(choice.reached);
    EXPECT_LT(choice.effort, 500);
    const Recall recall = recall_of_standing_out(index, sets, queries, 10, choice.effort, pool);
    EXPECT_GT(recall.queries, 100U);
    EXPECT_GT(recall.share, 0.87);
}

// Sets of 40 elements by chance; each one whose number `copied` divides is nearly the one before.
Sets sets_with_copies(std::size_t count, std::size_t copied, unsigned seed)
{
    std::mt19937_64 random(seed);
    Sets sets(count);
    for (std::size_t i = 0; i < count; ++i) {
        const bool copy = copied != 0 && i % copied == copied - 1;
        if (copy) sets[i] = sets[i - 1];
        while (sets[i].size() < (copy ? 44U : 40U)) sets[i].insert(random() % 1000000);
    }
    return sets;
}

// The ten nearest rows of most queries are as far as any: these do not raise the number of candidates.
TEST(MatchcountMinhash, FindsRowsThatStandOutAmongFewCandidates)
{
    ThreadPool pool(2);
    for (const std::size_t copied : {0U, 5U, 200U}) {
        SCOPED_TRACE(copied);
        const Sets sets = sets_with_copies(4000, copied, 20);
        const Index index = index_of(sets, 0, pool);
        const EffortChoice choice = choose_effort(index.builder->calibration(), 10, 0.95);
        EXPECT_TRUE(choice.reached);
        EXPECT_LE(choice.effort, 20);
        const ParameterList options = index.builder->effective_options();
        EXPECT_NEAR(static_cast<double>(options.get(option_standing_within, 0)), 937700, 2000);
        EXPECT_LT(options.get(option_standing_out, -1), copied == 0 ? 1 : 120);
        Sets queries;
        for (std::size_t i = 4; i < sets.size(); i += 5) queries.push_back(sets[i]);
        const Recall recall = recall_of_standing_out(index, sets, queries, 10, choice.effort, pool);
        EXPECT_EQ(recall.queries, 800U);  // a query is a row of the index
        EXPECT_GT(recall.share, 0.99);
    }
}

TEST(MatchcountMinhash, TakesFewRows)
{
    ThreadPool pool(1);
    const Set query = grouped_sets(1, 13)[0];
    for (const std::size_t count : {0U, 1U, 2U, 5U}) {
        const Sets sets = grouped_sets(count, 12);
        const Index index = index_of(sets, 16, pool);
        ASSERT_NO_FATAL_FAILURE(expect_equal(search(index, {query}, 10, pool)[0], by_distance(query, sets)));
    }
    const Index empty = index_of(Sets(300), 16, pool);
    EXPECT_EQ(search(empty, {Set()}, 300, pool)[0].size(), 300U);
    EXPECT_EQ(search(empty, {query}, 300, pool)[0][0].distance, query.empty() ? 0 : 1);
}

TEST(MatchcountMinhash, RefusesOtherMetricsAndOptions)
{
    const auto functions = [](std::initializer_list<std::pair<const char*, std::int64_t>> options) {
        return matchcount::functions_of_sets(shape_of(), make_list(options));
    };
    EXPECT_THROW(matchcount::functions_of_sets(shape_of(Metric::overlap), {}), BadRequest);
    EXPECT_THROW(functions({{"hashes", 7}}), BadRequest);
    EXPECT_THROW(functions({{"hashes", 100}, {"delta", 50000}}), BadRequest);
    EXPECT_THROW(functions({{"epsilon", 20000}, {"delta", 10000}}), BadRequest);
    EXPECT_THROW(functions({{"buckets", 9}}), BadRequest);
    EXPECT_THROW(functions({{"lsh", 1}}), BadRequest);
    EXPECT_THROW(functions({{"gram", 2}}), BadRequest);
    EXPECT_EQ(functions({}), 226U);
    EXPECT_EQ(functions({{"epsilon", 100000}, {"delta", 100000}}), 56U);
}

}  // namespace
}  // namespace pgwarp::test::matchcount_minhash_test
