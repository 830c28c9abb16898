// Match counts by an inverted index and a count priority queue, against counting each element of each row.
#include "methods/matchcount/match_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "methods/errors.h"

namespace pgwarp::matchcount
{
namespace
{

using Row = std::vector<std::uint32_t>;
constexpr std::uint32_t last_keyword = std::numeric_limits<std::uint32_t>::max();

// Rows, with their inverted index.
struct Index {
    explicit Index(std::vector<Row> rows_in, ThreadPool& pool = caller_alone())
        : rows(std::move(rows_in)), offsets{0}, lists(concatenate(), pool)
    {
    }
    KeywordRows concatenate()
    {
        for (const Row& row : rows) {
            keywords.insert(keywords.end(), row.begin(), row.end());
            offsets.push_back(keywords.size());
        }
        return {offsets, keywords};
    }

    std::vector<Row> rows;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> keywords;
    KeywordLists lists;
};

// Definition 3.1.
std::uint32_t match_count(const Row& row, const std::vector<Item>& items)
{
    std::uint32_t count = 0;
    for (const Item& item : items)
        for (const std::uint32_t keyword : row) count += item.first <= keyword && keyword <= item.last;
    return count;
}

std::vector<CountedRow> counted_by_definition(const std::vector<Row>& rows, const std::vector<Item>& items,
                                              std::size_t k, RowBitmap dead)
{
    std::vector<CountedRow> all;
    for (std::uint32_t row = 0; row < rows.size(); ++row)
        if (!bit_is_set(dead, row)) all.push_back({row, match_count(rows[row], items)});
    std::sort(all.begin(), all.end(), [](const CountedRow& a, const CountedRow& b) {
        return a.count != b.count ? a.count > b.count : a.row < b.row;
    });
    all.resize(std::min(k, all.size()));
    return all;
}

void expect_same(const std::vector<CountedRow>& found, const std::vector<CountedRow>& expected)
{
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, expected[i].row) << "at " << i;
        ASSERT_EQ(found[i].count, expected[i].count) << "at " << i;
    }
}

// Compares the search with the definition, and with theorem 4.1: AuditThreshold is one more than the k-th count, and at
// most k rows pass the gate at each of its values.
void expect_right(const Index& index, const std::vector<Item>& items, std::uint32_t k, RowBitmap dead,
                  CountWorkspace& workspace)
{
    const MatchCounts found = search_counts(index.lists, items, k, dead, workspace);
    const std::vector<CountedRow> expected = counted_by_definition(index.rows, items, k, dead);
    ASSERT_NO_FATAL_FAILURE(expect_same(found.rows, expected));
    const bool full = k > 0 && expected.size() == k;
    ASSERT_EQ(found.audit_threshold, full ? expected.back().count + 1 : 1);
    ASSERT_LE(found.passed_rows, std::uint64_t{k} * found.audit_threshold);
}

struct RandomCase {
    std::vector<Row> rows;
    std::vector<Item> items;
    std::uint32_t k;
    std::vector<std::uint64_t> dead;
};

std::uint32_t below(std::mt19937_64& random, std::uint64_t limit)
{
    return static_cast<std::uint32_t>(random() % limit);
}

// Few keywords, so that rows and items repeat them and counts are equal.
RandomCase random_case(std::mt19937_64& random)
{
    RandomCase made;
    const std::uint32_t universe = 1 + below(random, 12);
    const std::uint32_t stride = random() % 2 == 0 ? 1 : last_keyword / 12;
    made.rows.resize(below(random, 20));
    for (Row& row : made.rows) {
        row.resize(below(random, 8));
        for (std::uint32_t& keyword : row) keyword = below(random, universe) * stride;
    }
    made.items.resize(below(random, 8));
    for (Item& item : made.items) {
        item.first = below(random, universe) * stride;
        item.last = random() % 2 == 0 ? item.first : below(random, universe) * stride;
    }
    made.k = below(random, 24);
    if (random() % 2 == 0) {
        made.dead.resize((made.rows.size() + 63) / 64);
        for (std::size_t row = 0; row < made.rows.size(); ++row)
            if (random() % 4 == 0) set_bit(made.dead, row);
    }
    return made;
}

TEST(MatchCount, RandomSmallCasesAreAsDefined)
{
    std::mt19937_64 random(1);
    CountWorkspace workspace;
    for (int i = 0; i < 100000; ++i) {
        const RandomCase made = random_case(random);
        const Index index(made.rows);
        ASSERT_NO_FATAL_FAILURE(expect_right(index, made.items, made.k, made.dead, workspace)) << "case " << i;
    }
}

}  // namespace
}  // namespace pgwarp::matchcount
