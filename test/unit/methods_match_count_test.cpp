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
    const auto matched =
        std::count_if(expected.begin(), expected.end(), [](const CountedRow& row) { return row.count > 0; });
    ASSERT_GE(found.passed_rows, matched);
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

// What random cases are drawn from.
struct CaseForm {
    std::uint32_t rows;      // at most, as all of these
    std::uint32_t keywords;  // of a row
    std::uint32_t items;
    std::uint32_t universe;  // few keywords: rows and items repeat them, and counts are equal
};

RandomCase random_case(const CaseForm& form, std::mt19937_64& random)
{
    RandomCase made;
    const std::uint32_t universe = 1 + below(random, form.universe);
    const std::uint32_t stride = random() % 2 == 0 ? 1 : last_keyword / form.universe;
    made.rows.resize(below(random, form.rows + 1));
    for (Row& row : made.rows) {
        row.resize(below(random, form.keywords + 1));
        for (std::uint32_t& keyword : row) keyword = below(random, universe) * stride;
    }
    made.items.resize(below(random, form.items + 1));
    for (Item& item : made.items) {
        item.first = below(random, universe) * stride;
        item.last = random() % 2 == 0 ? item.first : below(random, universe) * stride;
    }
    made.k = below(random, form.rows + 5);
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
    for (int i = 0; i < 1000000; ++i) {
        const RandomCase made = random_case({20, 7, 7, 12}, random);
        const Index index(made.rows);
        ASSERT_NO_FATAL_FAILURE(expect_right(index, made.items, made.k, made.dead, workspace)) << "case " << i;
    }
}

TEST(MatchCount, SlicesOfAnySizeGiveTheSame)
{
    std::mt19937_64 random(2);
    CountWorkspace workspaces[] = {CountWorkspace(0), CountWorkspace(128), CountWorkspace(1024), CountWorkspace()};
    for (int i = 0; i < 1000; ++i) {
        RandomCase made = random_case({2000, 12, i % 2 == 0 ? 4U : 40U, i % 4 < 2 ? 4U : 30U}, random);
        if (i % 3 == 0) made.k = below(random, 20);
        const Index index(made.rows);
        for (CountWorkspace& workspace : workspaces)
            ASSERT_NO_FATAL_FAILURE(expect_right(index, made.items, made.k, made.dead, workspace)) << "case " << i;
    }
}

// The table holds O(k * AuditThreshold) rows, though nearly all rows match.
TEST(MatchCount, FewRowsPassTheGate)
{
    std::mt19937_64 random(6);
    std::vector<Row> rows(20000);
    for (Row& row : rows)
        for (int i = 0; i < 20; ++i) row.push_back(below(random, 100));
    const Index index(rows);
    std::vector<Item> items;
    for (std::uint32_t keyword = 0; keyword < 30; ++keyword) items.push_back({keyword, keyword});
    CountWorkspace workspaces[] = {CountWorkspace(1024), CountWorkspace()};
    for (CountWorkspace& workspace : workspaces) {
        for (const std::uint32_t k : {1U, 10U, 100U}) {
            ASSERT_NO_FATAL_FAILURE(expect_right(index, items, k, {}, workspace));
            const MatchCounts found = search_counts(index.lists, items, k, {}, workspace);
            EXPECT_GT(found.audit_threshold, 10U);
            EXPECT_LE(found.passed_rows, k * found.audit_threshold);
        }
    }
}

TEST(MatchCount, FewPostingsAmongManyRows)
{
    std::mt19937_64 random(3);
    std::vector<Row> rows(20000);
    for (int i = 0; i < 60; ++i) rows[below(random, rows.size())].push_back(below(random, 20));
    const Index index(rows);
    CountWorkspace workspace;
    for (std::uint32_t keyword = 0; keyword < 20; ++keyword) {
        for (const std::uint32_t k : {1U, 2U, 10U, 100U}) {
            const std::vector<Item> items = {{keyword, keyword}, {keyword, keyword + 3}, {0, 1}};
            ASSERT_NO_FATAL_FAILURE(expect_right(index, items, k, {}, workspace));
        }
    }
}

TEST(MatchCount, WithoutRowsItemsOrPlaces)
{
    CountWorkspace workspace;
    const KeywordLists none({}, caller_alone());
    EXPECT_EQ(none.rows(), 0U);
    EXPECT_TRUE(search_counts(none, std::vector<Item>{{0, last_keyword}}, 5, {}, workspace).rows.empty());
    const Index empty({});
    expect_right(empty, {{0, last_keyword}}, 5, {}, workspace);
    const Index empty_rows({{}, {}, {}});
    expect_right(empty_rows, {{0, last_keyword}}, 2, {}, workspace);
    const Index index({{1}, {}, {1, 2}});
    expect_right(index, {}, 2, {}, workspace);
    expect_right(index, {{1, 2}}, 0, {}, workspace);
    expect_right(index, {{1, 2}}, 4, {}, workspace);
    expect_right(index, {{1, 2}}, last_keyword, {}, workspace);
}

TEST(MatchCount, DeadRowsAreNeverFound)
{
    const Index index({{1, 1, 1}, {1, 1}, {1}, {}, {1, 1}});
    CountWorkspace workspace;
    for (std::uint64_t dead = 0; dead < 32; ++dead)
        for (std::uint32_t k = 1; k < 7; ++k) expect_right(index, {{1, 1}}, k, {&dead, 1}, workspace);
}

TEST(MatchCount, RangesTheWrongWayRoundContainNothing)
{
    const Index index({{0, 5, last_keyword}, {5}});
    CountWorkspace workspace;
    expect_right(index, {{5, 4}, {last_keyword, 0}, {1, 0}}, 2, {}, workspace);
    EXPECT_TRUE(index.lists.lists(Item{last_keyword, 0}).empty());
}

TEST(MatchCount, EveryKeywordOf32Bits)
{
    const Index index({{0, last_keyword}, {last_keyword}, {1U << 31, 0}, {last_keyword - 1}});
    CountWorkspace workspace;
    const std::vector<std::vector<Item>> queries = {{{0, last_keyword}},
                                                    {{last_keyword, last_keyword}},
                                                    {{0, last_keyword - 1}},
                                                    {{1, last_keyword}, {0, 0}, {0, last_keyword}}};
    for (const std::vector<Item>& items : queries) expect_right(index, items, 3, {}, workspace);
}

// Counters of 4, 8 and 16 bits hold counts up to 15, 255 and 65,535.
TEST(MatchCount, CountsAtTheBordersOfCounters)
{
    CountWorkspace workspace(64);
    for (const std::uint32_t border : {16U, 256U, 65536U}) {
        std::vector<Row> rows(300);
        for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row].assign(row % 3, 7);
        for (const std::uint32_t length : {border - 2, border - 1, border, border + 1}) {
            rows[length % 290].assign(length, 7);
            const Index index(rows);
            for (const std::uint32_t k : {1U, 3U, 200U}) {
                ASSERT_NO_FATAL_FAILURE(expect_right(index, {{7, 7}}, k, {}, workspace)) << length;
                ASSERT_NO_FATAL_FAILURE(expect_right(index, {{7, 7}, {1, 9}, {8, 9}}, k, {}, workspace)) << length;
            }
        }
    }
}

// By rows without duplicates: the number of items bounds the count, then the longest row.
TEST(MatchCount, ItemsAtTheBordersOfCounters)
{
    CountWorkspace workspace(64);
    std::vector<Row> rows(200);
    for (std::uint32_t row = 0; row < rows.size(); ++row)
        for (std::uint32_t keyword = 0; keyword < 2 * row; ++keyword) rows[row].push_back(keyword * 977);
    const Index index(rows);
    for (const std::uint32_t count : {14U, 15U, 16U, 17U, 254U, 255U, 256U, 257U}) {
        std::vector<Item> items;
        for (std::uint32_t i = 0; i < count; ++i) items.push_back({i * 977, i * 977});
        for (const std::uint32_t k : {1U, 50U, 199U})
            ASSERT_NO_FATAL_FAILURE(expect_right(index, items, k, {}, workspace)) << count;
        for (Item& item : items) item.last += 976 * 3;
        ASSERT_NO_FATAL_FAILURE(expect_right(index, items, 50, {}, workspace)) << count;
    }
}

TEST(MatchCount, TenThousandItems)
{
    std::mt19937_64 random(4);
    std::vector<Row> rows(500);
    for (Row& row : rows)
        for (int i = 0; i < 20; ++i) row.push_back(below(random, 5000) * 811);
    const Index index(rows);
    std::vector<Item> items;
    for (int i = 0; i < 10000; ++i) {
        const std::uint32_t keyword = below(random, 5000) * 811;
        items.push_back({keyword, keyword + (i % 100 == 0 ? 81100 : 0)});
    }
    CountWorkspace workspace(64);
    for (const std::uint32_t k : {1U, 100U, 500U}) expect_right(index, items, k, {}, workspace);
}

// Many items that contain many keywords each: the lists of all of them together would take more memory than the index.
TEST(MatchCount, ManyItemsOfManyKeywords)
{
    constexpr std::uint32_t keywords = 1000;
    std::vector<Row> rows(40 * keywords);
    for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row] = {row % keywords};
    const Index index(rows);
    const std::vector<Item> items(300, Item{1, keywords - 1});
    CountWorkspace workspace;
    const MatchCounts found = search_counts(index.lists, items, 1, {}, workspace);
    ASSERT_EQ(found.rows.size(), 1U);
    EXPECT_EQ(found.rows[0].row, 1U);
    EXPECT_EQ(found.rows[0].count, items.size());
    EXPECT_LE(workspace.lists.capacity(), 2 * items.size());
}

TEST(MatchCount, CountsAbove31BitsAreRefused)
{
    const Index index({Row(1U << 20, 7)});
    const std::vector<Item> items(1U << 12, Item{7, 7});
    CountWorkspace workspace;
    EXPECT_THROW(search_counts(index.lists, items, 1, {}, workspace), BadRequest);
}

// Keyword lists by definition: the rows of each keyword.
void expect_lists_of(const std::vector<Row>& rows, const KeywordLists& lists)
{
    std::vector<std::pair<std::uint32_t, std::uint32_t>> postings;
    std::size_t longest = 0;
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        longest = std::max(longest, rows[row].size());
        for (const std::uint32_t keyword : rows[row]) postings.emplace_back(keyword, row);
    }
    std::sort(postings.begin(), postings.end());
    ASSERT_EQ(lists.postings(), postings.size());
    ASSERT_EQ(lists.longest_row(), longest);
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < postings.size();) {
        const std::uint32_t keyword = postings[i].first;
        const std::span<const std::uint32_t> list = lists.list(keyword);
        std::uint32_t repeats = 0;
        for (const std::uint32_t row : list) {
            ASSERT_TRUE(i < postings.size() && postings[i].first == keyword && postings[i].second == row);
            repeats = i > 0 && postings[i] == postings[i - 1] ? repeats + 1 : 1;
            most = std::max(most, repeats);
            ++i;
        }
        ASSERT_FALSE(list.empty());
        const bool next_occurs = i < postings.size() && postings[i].first == keyword + 1;
        ASSERT_TRUE(next_occurs || keyword == last_keyword || lists.list(keyword + 1).empty());
    }
    ASSERT_EQ(lists.most_repeats(), most);
    ASSERT_EQ(lists.lists(Item{0, last_keyword}).size(), postings.size());
}

TEST(KeywordLists, HoldEachRowOfEachKeyword)
{
    std::mt19937_64 random(5);
    ThreadPool pool(3);
    for (const std::uint64_t universe : {1ULL, 100ULL, 3000ULL, 1ULL << 20, 1ULL << 32}) {
        for (const std::size_t row_count : {1UL, 100UL, 30000UL}) {
            std::vector<Row> rows(row_count);
            for (Row& row : rows) {
                row.resize(below(random, 9));
                // Half of the keywords are among the first, so that parts differ in size.
                for (std::uint32_t& keyword : row)
                    keyword = below(random, random() % 2 == 0 ? universe : 1 + universe / 1000);
            }
            for (ThreadPool* threads : {&pool, &caller_alone()}) {
                const Index index(rows, *threads);
                ASSERT_NO_FATAL_FAILURE(expect_lists_of(rows, index.lists)) << universe << " " << row_count;
            }
        }
    }
}

}  // namespace
}  // namespace pgwarp::matchcount
