// Weighted match counts against sums of each element of each row, and the error of the sums in fixed point.
#include "methods/matchcount/weighted_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "methods/errors.h"

namespace pgwarp::matchcount::weighted_count_test
{
namespace
{

using Row = std::vector<WeightedItem>;

struct Index {
    explicit Index(std::vector<Row> rows_in, ThreadPool& pool = caller_alone())
        : rows(std::move(rows_in)), offsets{0}, lists(concatenate(), pool)
    {
    }
    WeightedRows concatenate()
    {
        for (const Row& row : rows) {
            for (const WeightedItem& element : row) {
                keywords.push_back(element.keyword);
                weights.push_back(element.weight);
            }
            offsets.push_back(keywords.size());
        }
        return {{offsets, keywords}, weights};
    }

    std::vector<Row> rows;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> keywords;
    std::vector<float> weights;
    WeightedLists lists;
};

// The products of a row and the items in canonical order: by keyword, the item's weight, place in the row.
std::vector<double> products(const Row& row, std::vector<WeightedItem> items)
{
    std::sort(items.begin(), items.end(), [](const WeightedItem& a, const WeightedItem& b) {
        return std::pair(a.keyword, a.weight) < std::pair(b.keyword, b.weight);
    });
    std::vector<double> all;
    for (const WeightedItem& item : items)
        for (const WeightedItem& element : row)
            if (element.keyword == item.keyword) all.push_back(double{item.weight} * double{element.weight});
    return all;
}

std::vector<ScoredRow> scored_by_definition(const std::vector<Row>& rows, const std::vector<WeightedItem>& items,
                                            std::size_t k, RowBitmap dead)
{
    std::vector<ScoredRow> all;
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        if (bit_is_set(dead, row)) continue;
        double score = 0;
        for (const double product : products(rows[row], items)) score += product;
        all.push_back({row, score});
    }
    std::sort(all.begin(), all.end(), [](const ScoredRow& a, const ScoredRow& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
    });
    all.resize(std::min(k, all.size()));
    return all;
}

// Long double sums have an error of less than a millionth of a unit of the sums in fixed point.
void expect_error_within_bound(const Index& index, const std::vector<WeightedItem>& items)
{
    const FixedPointScores scores = fixed_point_scores(index.lists, items);
    ASSERT_EQ(scores.sums.size(), index.rows.size());
    for (std::size_t row = 0; row < index.rows.size(); ++row) {
        long double exact = 0;
        for (const double product : products(index.rows[row], items)) exact += product;
        const long double scaled = std::ldexp(exact, scores.exponent);
        ASSERT_LE(std::abs(scaled - scores.sums[row]), scores.most_addends / 2.0L + 1e-6L) << "row " << row;
    }
}

void expect_right(const Index& index, const std::vector<WeightedItem>& items, std::uint32_t k, RowBitmap dead)
{
    const std::vector<ScoredRow> found = search_weighted(index.lists, items, k, dead);
    const std::vector<ScoredRow> expected = scored_by_definition(index.rows, items, k, dead);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, expected[i].row) << "at " << i;
        ASSERT_EQ(found[i].score, expected[i].score) << "at " << i;
    }
}

// The ways in which weights are drawn. Uneven: a few are so large that others are a few units in fixed point.
enum class Weights { small_integers, normal, any_size, uneven };

float random_weight(Weights weights, std::mt19937_64& random)
{
    switch (weights) {
        case Weights::small_integers:
            return static_cast<float>(static_cast<int>(random() % 5) - 2);
        case Weights::normal:
            return std::normal_distribution<float>()(random);
        case Weights::any_size:
            return std::ldexp(std::normal_distribution<float>()(random), static_cast<int>(random() % 200) - 100);
        case Weights::uneven:
            return random() % 16 == 0 ? -0x1p14F : std::uniform_real_distribution<float>(1, 3)(random);
    }
    return 0;
}

std::vector<WeightedItem> random_items(std::size_t count, std::uint32_t universe, Weights weights,
                                       std::mt19937_64& random)
{
    std::vector<WeightedItem> items(count);
    for (WeightedItem& item : items) {
        item.keyword = static_cast<std::uint32_t>(random() % universe) * 977;
        item.weight = random_weight(weights, random);
    }
    return items;
}

TEST(WeightedCount, RandomCasesAreAsDefined)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const auto weights = static_cast<Weights>(i % 4);
        const std::uint32_t universe = i % 3 == 0 ? 5 : 40;
        std::vector<Row> rows(random() % 60);
        for (Row& row : rows) row = random_items(random() % 10, universe, weights, random);
        std::vector<std::uint64_t> dead(i % 2);
        if (!dead.empty()) dead[0] = random() & random();
        const Index index(rows);
        const std::vector<WeightedItem> items = random_items(random() % 10, universe, weights, random);
        const auto k = static_cast<std::uint32_t>(random() % (i % 5 == 0 ? 80 : 5));
        ASSERT_NO_FATAL_FAILURE(expect_right(index, items, k, dead)) << "case " << i;
        ASSERT_NO_FATAL_FAILURE(expect_error_within_bound(index, items)) << "case " << i;
    }
}

TEST(WeightedCount, ManyRows)
{
    std::mt19937_64 random(2);
    for (const Weights weights : {Weights::normal, Weights::uneven, Weights::any_size}) {
        std::vector<Row> rows(4000);
        for (Row& row : rows) row = random_items(random() % 20, 3000, weights, random);
        ThreadPool pool(2);
        const Index index(rows, pool);
        for (const std::size_t count : {1U, 30U, 100U, 400U}) {
            const std::vector<WeightedItem> items = random_items(count, 3000, weights, random);
            for (const std::uint32_t k : {1U, 100U})
                ASSERT_NO_FATAL_FAILURE(expect_right(index, items, k, {})) << count << " items";
            ASSERT_NO_FATAL_FAILURE(expect_error_within_bound(index, items)) << count << " items";
        }
    }
}

TEST(WeightedCount, OrderOfItemsChangesNothing)
{
    std::mt19937_64 random(3);
    std::vector<Row> rows(500);
    for (Row& row : rows) row = random_items(20, 100, Weights::normal, random);
    const Index index(rows);
    std::vector<WeightedItem> items = random_items(50, 100, Weights::normal, random);
    const std::vector<std::int32_t> sums = fixed_point_scores(index.lists, items).sums;
    for (int i = 0; i < 10; ++i) {
        std::shuffle(items.begin(), items.end(), random);
        EXPECT_EQ(fixed_point_scores(index.lists, items).sums, sums);
        expect_right(index, items, 20, {});
    }
}

// Rows that nothing matches are better than rows of negative scores, and equal to matched rows of the score 0.
TEST(WeightedCount, RowsWithoutMatchHaveTheScore0)
{
    const Index index({{{1, -1}}, {}, {{1, 1}, {2, -1}}, {{3, 5}}, {{2, 2}}, {{1, -1e-30F}}, {{1, 1e-30F}}});
    for (std::uint32_t k = 0; k < 9; ++k) {
        expect_right(index, {{1, 1}, {2, 1}}, k, {});
        expect_right(index, {{1, -1}, {2, -1}}, k, {});
        expect_right(index, {{1, 0}}, k, {});
        expect_right(index, {{9, 1}}, k, {});
        expect_right(index, {}, k, {});
    }
}

// The sums come near the ends of 32 bits, of both signs.
TEST(WeightedCount, SumsDoNotOverflow)
{
    const float largest = std::numeric_limits<float>::max();
    const float smallest = std::numeric_limits<float>::denorm_min();
    for (const float weight : {largest, smallest, 1.0F, 1.9999F, 3.0F}) {
        for (const std::size_t repeats : {1U, 7U, 1000U}) {
            const Index index({Row(repeats, {7, weight}), Row(repeats, {7, -weight}), {{7, weight}}});
            const std::vector<WeightedItem> items(3, {7, weight});
            ASSERT_NO_FATAL_FAILURE(expect_error_within_bound(index, items)) << weight << " " << repeats;
            ASSERT_NO_FATAL_FAILURE(expect_right(index, items, 3, {})) << weight << " " << repeats;
            EXPECT_GT(fixed_point_scores(index.lists, items).sums[0], 1 << 29);
        }
    }
}

TEST(WeightedCount, WeightsThatAreNotFiniteAreRefused)
{
    const Index index({{{1, 1}}});
    for (const float weight : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
        EXPECT_THROW(search_weighted(index.lists, std::vector<WeightedItem>{{1, weight}}, 1, {}), BadRequest);
        EXPECT_THROW(Index({{{1, weight}}}), BadRequest);
    }
}

}  // namespace
}  // namespace pgwarp::matchcount::weighted_count_test
