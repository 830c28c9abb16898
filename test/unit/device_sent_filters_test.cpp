// Predicates as they are sent to the device, and the tests of rows by them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "graph/filtered_queue.h"
#include "graph/launch_config.h"
#include "predicate_fixture.h"
#include "protocol/predicates.h"
#include "rows/sent_filters.h"

namespace pgwarp::cuda
{
namespace
{

using rows::PredicateWords;
using rows::SentFilters;

constexpr std::uint32_t columns = 3;
constexpr std::uint64_t values = 50;

class SentFiltersTest : public testing::Test
{
protected:
    SentFiltersTest()
    {
        std::mt19937_64 random(1);
        for (std::size_t i = 0; i < 500 * columns; ++i) codes_.push_back(random() % (values + 2));
    }
    rows::FilterView send(const SentFilters& filters)
    {
        // As a workspace is, on a bound of the carver's.
        memory_.assign(filters.bytes() + Carver::alignment, std::byte{0xee});
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        std::byte* const begin = memory_.data() + (Carver::alignment - address % Carver::alignment);
        filters.write(begin);
        return filters.view(begin);
    }
    void expect_passing(const SentFilters& filters, const std::vector<PredicateWords>& predicates)
    {
        const rows::FilterView view = send(filters);
        for (std::uint32_t q = 0; q < filters.count(); ++q) {
            for (std::uint32_t row = 0; row < codes_.size() / columns; ++row) {
                const bool wanted =
                    predicates[q].empty() || passes(predicates[q], codes_.data() + std::size_t{row} * columns);
                ASSERT_EQ(view.passes(q, row), wanted) << "query " << q << " row " << row;
                ASSERT_EQ(view.from(q).passes(0, row), wanted);
            }
        }
    }
    rows::AttributeView attributes() const { return {codes_.data(), columns}; }

    std::vector<std::uint64_t> codes_;
    std::vector<std::byte> memory_;
};

TEST_F(SentFiltersTest, TestRowsAsTheHostDoes)
{
    std::mt19937_64 random(2);
    std::vector<test::Predicate> made;
    for (int i = 0; i < 200; ++i) made.push_back(test::random_predicate(random, columns, values));
    made.push_back(test::Predicate().where(0, 0, ~std::uint64_t{0}).where(2, 7, 7));
    std::vector<PredicateWords> predicates{{}, made[0].words(), made[0].words(), {}, {}};
    for (const test::Predicate& predicate : made) predicates.push_back(predicate.words());
    const SentFilters filters(attributes(), predicates);
    EXPECT_EQ(filters.count(), predicates.size());
    expect_passing(filters, predicates);
}

TEST_F(SentFiltersTest, SendWhatFits)
{
    const std::vector<std::uint64_t> longest(rows::most_sent_words + 10, 0);
    const PredicateWords one(longest);
    // The first is sent however long it is, equal neighbours once.
    EXPECT_EQ(SentFilters(attributes(), {{one, one, one.first(2)}}).count(), 2U);
    EXPECT_EQ(SentFilters(attributes(), {{one.first(4), one.first(rows::most_sent_words - 4), one.first(1)}}).count(),
              2U);
    std::vector<PredicateWords> many(100000, one.first(10));
    EXPECT_EQ(SentFilters(attributes(), many).count(), many.size());
    for (std::size_t i = 0; i < many.size(); i += 2) many[i] = one.first(1000);
    const SentFilters some(attributes(), many);
    EXPECT_LT(some.count(), many.size());
    EXPECT_GE(some.count() / 2 * 1010, rows::most_sent_words - 2000);
}

TEST_F(SentFiltersTest, KeepTheFirst)
{
    const std::vector<test::Predicate> made{test::Predicate().where(0, 3, 9), test::Predicate().where(1, 0, 20),
                                            test::Predicate().where(2, 4, 40)};
    const std::vector<PredicateWords> predicates{made[0].words(), made[1].words(), made[2].words()};
    SentFilters filters(attributes(), predicates);
    filters.keep(7);
    EXPECT_EQ(filters.count(), 3U);
    filters.keep(2);
    EXPECT_EQ(filters.count(), 2U);
    expect_passing(filters, predicates);
    const SentFilters none;
    EXPECT_EQ(none.bytes(), 0U);
    EXPECT_TRUE(none.view(nullptr).passes(3, 5));
}

TEST(FilteredQueues, GrowAsFewerRowsPass)
{
    using graph::filtered_queue;
    EXPECT_EQ(filtered_queue(80, 10, 1), (graph::FilteredQueue{80, 80}));
    std::size_t length = 0;
    std::size_t expanded = 0;
    for (const double rate : {.999, .5, .3, .1, .05, .03, .01, .007}) {
        const graph::FilteredQueue queue = filtered_queue(80, 10, rate);
        EXPECT_GE(queue.length, length);
        EXPECT_GE(queue.ef, expanded);
        EXPECT_GE(queue.length, queue.ef);
        // Room for three deviations of the number of rows that pass.
        EXPECT_GE(static_cast<double>(queue.length) * rate, 10 + 3 * 3.16);
        EXPECT_GE(static_cast<double>(queue.ef) * rate, 10);
        EXPECT_LE(queue.length, graph::most_ef);
        length = queue.length;
        expanded = queue.ef;
    }
    for (const std::size_t k : {1, 10, 100, 1000}) {
        for (double rate = .99; rate > .3; rate -= .01) {
            const graph::FilteredQueue queue = filtered_queue(k + 5, k, rate);
            EXPECT_GE(static_cast<double>(queue.ef) * rate, static_cast<double>(k)) << k << " at " << rate;
            EXPECT_GE(queue.length, queue.ef);
        }
    }
    EXPECT_EQ(filtered_queue(80, 10, .001).length, 0U);
    EXPECT_EQ(filtered_queue(80, 10, 0).length, 0U);
    EXPECT_EQ(filtered_queue(5000, 4000, .5).length, 0U);
    EXPECT_GE(filtered_queue(4096, 100, .9).length, 4096U);
}

}  // namespace
}  // namespace pgwarp::cuda
