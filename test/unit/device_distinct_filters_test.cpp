// Predicates of a batch, each once; columns whose answers are looked up; and places in masks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "distance/mask_place.h"
#include "distance/score_bound.h"
#include "predicate_fixture.h"
#include "rows/distinct_filters.h"

namespace pgwarp::cuda
{
namespace
{

using rows::CodeSpan;
using rows::DistinctFilters;
using rows::PredicateWords;
using test::Predicate;

std::vector<PredicateWords> views_of(const std::vector<Predicate>& predicates)
{
    return {predicates.begin(), predicates.end()};
}

TEST(DistinctFilters, EqualPredicatesAreOne)
{
    test::Ranges long_one;
    for (std::uint64_t code = 0; code < 100; ++code) long_one.push_back({3 * code, 3 * code + 1});
    test::Ranges in_the_middle = long_one;
    in_the_middle[50].last = in_the_middle[50].first;
    const std::vector<Predicate> predicates = {Predicate().where(0, long_one),      Predicate().where(0, 5, 5),
                                               Predicate().where(0, in_the_middle), Predicate().where(0, 5, 5),
                                               Predicate().where(0, long_one),      Predicate().where(1, 5, 5)};
    const DistinctFilters filters({nullptr, 2}, views_of(predicates));
    EXPECT_EQ(filters.count(), 4U);
    const std::vector<std::uint32_t> expected = {0, 1, 2, 1, 0, 3};
    EXPECT_EQ(std::vector(filters.of_query().begin(), filters.of_query().end()), expected);
}

TEST(DistinctFilters, NoPredicateIsOneToo)
{
    const std::vector<PredicateWords> none(3);
    const DistinctFilters filters({nullptr, 2}, none);
    EXPECT_EQ(filters.count(), 1U);
    EXPECT_EQ(filters.groups(), 1U);
    EXPECT_EQ(filters.tested()[0], 0U);
    EXPECT_TRUE(filters.tables().empty());
}

TEST(DistinctFilters, TablesOfColumnsWithFewCodes)
{
    const std::uint64_t far = std::uint64_t{1} << 63;
    const std::vector<CodeSpan> spans = {
        {far, far + rows::most_table_codes - 1}, {0, rows::most_table_codes}, {7, 7}, {0, ~std::uint64_t{0}}, {1, 2}};
    std::vector<Predicate> predicates;
    for (std::uint32_t i = 0; i < 40; ++i) predicates.push_back(Predicate().where(0, far + i, far + i));
    predicates.push_back(Predicate().where(1, 1, 2));
    predicates.push_back(Predicate().where(0, far, far).where(2, 7, 7).where(3, 9, 9));
    const DistinctFilters filters({nullptr, 5, spans.data()}, views_of(predicates));
    ASSERT_EQ(filters.tables().size(), 2U);
    EXPECT_EQ(filters.tables()[0].column, 0U);
    EXPECT_EQ(filters.tables()[0].first, far);
    EXPECT_EQ(filters.tables()[0].entries, rows::most_table_codes);
    EXPECT_EQ(filters.tables()[1].column, 2U);
    EXPECT_EQ(filters.tables()[1].begin, rows::most_table_codes);
    EXPECT_EQ(filters.entries(), rows::most_table_codes + 1);
    ASSERT_EQ(filters.groups(), 2U);
    EXPECT_EQ(filters.tested()[0] | filters.tested()[1] | filters.ranged()[0], 0U);
    EXPECT_EQ(filters.ranged()[1], 0x300U);
}

// Of the terms on columns without a table a single range is tested for itself.
TEST(DistinctFilters, RangesOfOneTerm)
{
    const std::vector<CodeSpan> spans = {{0, 9}, {0, ~std::uint64_t{0}}, {0, ~std::uint64_t{0}}};
    std::vector<Predicate> predicates;
    for (std::uint64_t i = 0; i < 32; ++i) predicates.push_back(Predicate().where(0, i, i));
    predicates.push_back(Predicate().where(1, 5, 70));
    predicates.push_back(Predicate().where(0, 1, 2).where(2, 6, ~std::uint64_t{0}));
    predicates.push_back(Predicate().where(1, {{1, 2}, {4, 5}}));
    predicates.push_back(Predicate().where(1, {}));
    predicates.push_back(Predicate().where(1, 1, 2).where(2, 3, 4));
    predicates.push_back(Predicate());
    const DistinctFilters filters({nullptr, 3, spans.data()}, views_of(predicates));
    ASSERT_EQ(filters.groups(), 2U);
    EXPECT_EQ(filters.ranged()[0] | filters.tested()[0], 0U);
    EXPECT_EQ(filters.ranged()[1], 3U);
    EXPECT_EQ(filters.tested()[1], 0x1cU);
    EXPECT_EQ(filters.tested_count(), 3U);
    ASSERT_EQ(filters.ranges().size(), filters.count());
    EXPECT_EQ(filters.ranges()[32].column, 1U);
    EXPECT_EQ(filters.ranges()[32].first, 5U);
    EXPECT_EQ(filters.ranges()[32].last, 70U);
    EXPECT_EQ(filters.ranges()[33].column, 2U);
    EXPECT_EQ(filters.ranges()[33].first, 6U);
    EXPECT_EQ(filters.ranges()[33].last, ~std::uint64_t{0});
}

TEST(DistinctFilters, WithoutSpansThereAreNoTables)
{
    const std::vector<Predicate> predicates = {Predicate().where(0, {{1, 2}, {4, 4}}), Predicate()};
    const DistinctFilters filters({nullptr, 1}, views_of(predicates));
    EXPECT_TRUE(filters.tables().empty());
    EXPECT_EQ(filters.tested()[0], 1U);
}

TEST(DistinctFilters, AtMostSoManyTables)
{
    const std::vector<CodeSpan> spans(9, CodeSpan{0, 3});
    Predicate all;
    for (std::uint32_t column = 0; column < 9; ++column) all.where(column, 1, 2);
    const std::vector<Predicate> predicates = {all};
    const DistinctFilters filters({nullptr, 9, spans.data()}, views_of(predicates));
    EXPECT_EQ(filters.tables().size(), rows::most_tables);
    EXPECT_EQ(filters.tested()[0], 1U);
}

// Predicates of more words than are sent together end the queries, also those that name one sent before.
TEST(DistinctFilters, AsManyQueriesAsAreSent)
{
    test::Ranges many;
    for (std::uint64_t code = 0; many.size() < rows::most_sent_words / 4; ++code) many.push_back({2 * code, 2 * code});
    test::Ranges others = many;
    others.back().last += 1;
    const std::vector<Predicate> predicates = {Predicate().where(0, 1, 1), Predicate().where(0, many),
                                               Predicate().where(0, 1, 1), Predicate().where(0, others),
                                               Predicate().where(0, 1, 1)};
    const DistinctFilters filters({nullptr, 1}, views_of(predicates));
    EXPECT_EQ(filters.count(), 2U);
    EXPECT_EQ(filters.of_query().size(), 3U);
}

TEST(DistinctFilters, CodesThatATermAdmits)
{
    std::mt19937_64 random(1);
    for (int turn = 0; turn < 2000; ++turn) {
        const Predicate predicate = test::random_predicate(random, 3, 40);
        const std::uint64_t codes[3] = {random() % 42, random() % 6, random() % 3};
        bool all = true;
        for (std::uint32_t column = 0; column < 3; ++column)
            all = all && rows::admits_code(predicate.words().data(), column, codes[column]);
        ASSERT_EQ(all, passes(predicate, codes));
    }
}

TEST(MaskPlace, IsOneOfEachPosition)
{
    std::set<std::pair<std::uint32_t, std::uint32_t>> places;
    for (std::uint32_t position = 0; position < 1024; ++position) {
        const MaskPlace place = mask_place(position);
        ASSERT_LT(place.bit, 32U);
        ASSERT_EQ(place.word / 4, position / 128);
        ASSERT_EQ(masked_position(place.word, place.bit), position);
        places.emplace(place.word, place.bit);
    }
    EXPECT_EQ(places.size(), 1024U);
}

// A bound that a search emits for a value is turned back into one that is no less than the value.
TEST(ScoreBound, ValuesOfHalves)
{
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal;
    for (int turn = 0; turn < 10000; ++turn) {
        const double value = normal(random) * std::exp(8 * normal(random));
        const double error = std::fabs(value) * std::exp(4 * normal(random) - 4);
        const double norm = std::exp(normal(random));
        const double distance = std::fabs(value);
        EXPECT_GE(value_of_halves(Metric::l2, lower_bound(Metric::l2, distance, error, norm), error, norm), distance);
        const double bound = lower_bound(Metric::inner_product, value, error, norm);
        EXPECT_GE(value_of_halves(Metric::inner_product, bound, error, norm), value);
        EXPECT_LE(value_of_halves(Metric::inner_product, bound, error, norm),
                  value + 1e-11 * (std::fabs(value) + norm * error));
        const double product = std::clamp(value, -1.0, 1.0);
        EXPECT_GE(value_of_halves(Metric::cosine, lower_bound(Metric::cosine, 1 - product, error, norm), error, norm),
                  -product);
    }
}

}  // namespace
}  // namespace pgwarp::cuda
