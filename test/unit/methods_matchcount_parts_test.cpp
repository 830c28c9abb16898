// The index method matchcount over sets and attributes: dictionaries, and answers compared with the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "methods/arrays.h"
#include "methods/matchcount/part_search.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "part_fixture.h"
#include "protocol/search_bound.h"

namespace pgwarp::test::matchcount_parts_test
{
namespace
{

using matchcount::CountWorkspace;
using matchcount::Item;
using matchcount::PartIndex;
using matchcount::PartQuery;
using matchcount::RankedRows;

constexpr double from_front = -std::numeric_limits<double>::infinity();

IndexShape shape_of(ElementType element, Metric metric)
{
    return Index::shape_of(Method::matchcount, metric, 0, element);
}

template <class Row>
PartIndex index_of(const std::vector<Row>& rows, Metric metric, ThreadPool& pool = caller_alone())
{
    const ElementType element = std::is_same_v<Row, Set> ? ElementType::set : ElementType::attribute_set;
    RankedRows ranked = matchcount::rank_parts(rows_of_parts(rows).view(), element, pool);
    return make_part_index(shape_of(element, metric), std::move(ranked), pool);
}

// All live rows in order of (distance, row).
template <class Row, class Query, class Distance>
std::vector<RowResult> all_in_order(const std::vector<Row>& rows, const Query& query, const Distance& distance,
                                    RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < rows.size(); ++i)
        if (!bit_is_set(dead, i)) all.push_back({distance(query, rows[i]), i});
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

void expect_equal(const std::vector<RowResult>& found, std::span<const RowResult> wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
        ASSERT_FALSE(found[i].distance == 0 && std::signbit(found[i].distance));
    }
}

// Searches by random k, cursors and bounds, many of which are distances of rows.
void expect_right(const PartIndex& index, const Words& words, const std::vector<RowResult>& all, RowBitmap dead,
                  std::mt19937_64& random, CountWorkspace& workspace)
{
    PartQuery query;
    query.words = words;
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
    expect_equal(search_parts(index, query, workspace), wanted);
}

std::vector<std::uint64_t> random_dead(std::mt19937_64& random)
{
    std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
    for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
    return dead;
}

// Of each of `indexes` small indexes, 10 queries, each searched for 10 times.
template <class MakeRow, class MakeQuery, class Distance>
void expect_random_cases(Metric metric, int indexes, unsigned seed, const MakeRow& make_row,
                         const MakeQuery& make_query, const Distance& distance)
{
    std::mt19937_64 random(seed);
    CountWorkspace workspace;
    for (int number = 0; number < indexes; ++number) {
        const std::uint64_t universe = 1 + random() % 20;
        std::vector<decltype(make_row(random, universe))> rows(random() % 24);
        for (auto& row : rows) row = make_row(random, universe);
        const PartIndex index = index_of(rows, metric);
        const std::vector<std::uint64_t> dead = random_dead(random);
        for (int i = 0; i < 10; ++i) {
            const auto query = make_query(random, universe);
            const std::vector<RowResult> all = all_in_order(rows, query, distance, dead);
            for (int j = 0; j < 10; ++j)
                ASSERT_NO_FATAL_FAILURE(expect_right(index, words_of(query), all, dead, random, workspace))
                    << "index " << number;
        }
    }
}

Set small_set(std::mt19937_64& random, std::uint64_t universe)
{
    return random_set(random, random() % 8 == 0 ? 40 : 7, universe, universe % 2 == 0);
}

double overlap_of_sets(const Set& query, const Set& row)
{
    return plain_overlap(query, row);
}

TEST(MatchcountParts, RandomSetsAreAsDefined)
{
    expect_random_cases(Metric::overlap, 3500, 1, small_set, small_set, overlap_of_sets);
}

TEST(MatchcountParts, RandomSetsUnderJaccardAreAsDefined)
{
    expect_random_cases(Metric::set_jaccard, 3500, 2, small_set, small_set, plain_set_jaccard);
}

TEST(MatchcountParts, RandomAttributesAreAsDefined)
{
    const auto make_row = [](std::mt19937_64& random, std::uint64_t values) {
        return random_attributes(random, 1 + values % 5, values);
    };
    const auto make_query = [](std::mt19937_64& random, std::uint64_t values) {
        return random_query(random, random() % 8 == 0 ? 40 : 6, 1 + values % 5, values);
    };
    const auto distance = [](const AttributeQuery& query, const Attributes& row) { return plain_overlap(query, row); };
    expect_random_cases(Metric::overlap, 3500, 3, make_row, make_query, distance);
}

// Rows and queries of many parts among many rows: all widths of counters, in slices of any size.
TEST(MatchcountParts, LargerSetsAreAsDefined)
{
    std::mt19937_64 random(4);
    ThreadPool pool(2);
    for (const std::uint64_t universe : {400U, 100000U}) {
        std::vector<Set> rows(3000);
        for (Set& row : rows) row = random_set(random, random() % 50 == 0 ? 400 : 30, universe, true);
        for (const Metric metric : {Metric::overlap, Metric::set_jaccard}) {
            const PartIndex index = index_of(rows, metric, pool);
            for (const std::size_t slice_bytes : {64U, 1024U, 524288U}) {
                CountWorkspace workspace(slice_bytes);
                for (int i = 0; i < 12; ++i) {
                    const Set query = random_set(random, i % 3 == 0 ? 4000 : 20, universe, true);
                    const auto distance = metric == Metric::overlap ? overlap_of_sets : plain_set_jaccard;
                    const std::vector<RowResult> all = all_in_order(rows, query, distance);
                    for (int j = 0; j < 8; ++j)
                        ASSERT_NO_FATAL_FAILURE(expect_right(index, words_of(query), all, {}, random, workspace));
                }
            }
        }
    }
}

// Numbers are compared as they are: ranges over a million of distinct values.
TEST(MatchcountParts, RangesOfNumbersNeedNoSteps)
{
    std::mt19937_64 random(5);
    ThreadPool pool(2);
    std::normal_distribution<double> normal;
    std::vector<Attributes> rows(30000);
    for (Attributes& row : rows) row = {{3, ordered_number(normal(random))}, {9, ordered_number(normal(random))}};
    const PartIndex index = index_of(rows, Metric::overlap, pool);
    EXPECT_EQ(index.dictionary.size(), 60000U);
    CountWorkspace workspace;
    for (int i = 0; i < 20; ++i) {
        const auto range = [&] {
            const auto [first, last] = std::minmax({normal(random), normal(random)});
            return std::pair(ordered_number(first), ordered_number(last));
        };
        const AttributeQuery query = {{3, {range()}}, {9, {range()}}, {9, {{0, ~std::uint64_t{0}}}}};
        const auto distance = [](const AttributeQuery& wanted, const Attributes& row) {
            return plain_overlap(wanted, row);
        };
        const std::vector<RowResult> all = all_in_order(rows, query, distance);
        for (int j = 0; j < 8; ++j)
            ASSERT_NO_FATAL_FAILURE(expect_right(index, words_of(query), all, {}, random, workspace));
    }
}

TEST(MatchcountParts, NumbersKeepTheirOrder)
{
    const double numbers[] = {-std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::lowest(),
                              -1.5,
                              -1,
                              -std::numeric_limits<double>::denorm_min(),
                              0,
                              std::numeric_limits<double>::denorm_min(),
                              1,
                              std::numeric_limits<double>::max(),
                              std::numeric_limits<double>::infinity()};
    for (std::size_t i = 1; i < std::size(numbers); ++i)
        EXPECT_LT(ordered_number(numbers[i - 1]), ordered_number(numbers[i])) << i;
    EXPECT_EQ(ordered_number(-0.0), ordered_number(0.0));
}

// The dictionary of many distinct parts, which threads collect piece by piece.
TEST(MatchcountDictionary, KeywordsAreRanks)
{
    for (const std::size_t threads : {1U, 3U}) {
        ThreadPool pool(threads);
        for (const std::uint64_t universe : {300U, 3000000U}) {
            std::mt19937_64 random(universe);
            std::vector<Set> rows(40000);
            for (Set& row : rows) row = random_set(random, 24, universe, random() % 2 == 0);
            std::vector<std::uint64_t> distinct;
            for (const Set& row : rows) distinct.insert(distinct.end(), row.begin(), row.end());
            std::sort(distinct.begin(), distinct.end());
            distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
            const RankedRows ranked = matchcount::rank_parts(rows_of_parts(rows).view(), ElementType::set, pool);
            ASSERT_EQ(ranked.dictionary.size(), distinct.size());
            ASSERT_EQ(ranked.offsets.size(), rows.size() + 1);
            std::size_t at = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                ASSERT_EQ(ranked.offsets[i], at);
                for (const std::uint64_t element : rows[i]) ASSERT_EQ(distinct[ranked.keywords[at++]], element);
            }
            ASSERT_EQ(ranked.keywords.size(), at);
        }
    }
}

TEST(MatchcountDictionary, FindsRangesOfANameAlone)
{
    const std::vector<Attributes> rows = {{{5, 10}, {7, 1}}, {{5, 20}, {7, 30}}, {{5, 10}}};
    const RankedRows ranked =
        matchcount::rank_parts(rows_of_parts(rows).view(), ElementType::attribute_set, caller_alone());
    const auto found = [&](std::uint64_t name, std::uint64_t first, std::uint64_t last) {
        const Item item = ranked.dictionary.find(name, first, last);
        return std::pair(item.first, item.last);
    };
    constexpr std::uint64_t largest = ~std::uint64_t{0};
    using Pair = std::pair<std::uint32_t, std::uint32_t>;
    constexpr Pair nothing{1, 0};
    EXPECT_EQ(found(5, 10, 10), Pair(0, 0));
    EXPECT_EQ(found(5, 0, largest), Pair(0, 1));
    EXPECT_EQ(found(5, 11, 25), Pair(1, 1));
    EXPECT_EQ(found(7, 0, largest), Pair(2, 3));
    EXPECT_EQ(found(7, 1, 1), Pair(2, 2));
    for (const auto& [name, first, last] :
         {std::tuple(5, 11, 19), {5, 11, 11}, {5, 21, 90}, {5, 90, 90}, {6, 0, 90}, {0, 0, 90}, {8, 1, 1}})
        EXPECT_EQ(found(name, first, last), nothing) << name << ' ' << first << ' ' << last;
    const RankedRows none =
        matchcount::rank_parts(rows_of_parts(std::vector<Set>()).view(), ElementType::set, caller_alone());
    EXPECT_EQ(none.dictionary.size(), 0U);
    EXPECT_EQ(none.offsets.size(), 1U);
    EXPECT_GT(none.dictionary.find(0, 0, largest).first, none.dictionary.find(0, 0, largest).last);
}

Words words(std::initializer_list<std::uint64_t> numbers)
{
    Words all;
    for (const std::uint64_t number : numbers) append_number(number, all);
    return all;
}

TEST(MatchcountParts, WordsFromOutsideAreChecked)
{
    EXPECT_EQ(set_fault({}), nullptr);
    EXPECT_EQ(set_fault(words({1, 2, ~std::uint64_t{0}})), nullptr);
    EXPECT_NE(set_fault(words({1, 1})), nullptr);
    EXPECT_NE(set_fault(words({2, 1})), nullptr);
    EXPECT_NE(set_fault(Words{1, 2, 3}), nullptr);
    EXPECT_EQ(attribute_set_fault({}), nullptr);
    EXPECT_EQ(attribute_set_fault(words({1, 9, 2, 9})), nullptr);
    EXPECT_NE(attribute_set_fault(words({1, 9, 1, 10})), nullptr);
    EXPECT_NE(attribute_set_fault(words({2, 9, 1, 9})), nullptr);
    EXPECT_NE(attribute_set_fault(words({1, 9, 2})), nullptr);
}

TEST(MatchcountParts, QueriesFromOutsideAreChecked)
{
    EXPECT_EQ(attribute_query_fault({}), nullptr);
    EXPECT_EQ(attribute_query_fault(words_of(AttributeQuery{{1, {{2, 3}, {5, 5}}}, {1, {}}, {0, {{7, 7}}}})), nullptr);
    EXPECT_NE(attribute_query_fault(words_of(AttributeQuery{{1, {{3, 2}}}})), nullptr);
    EXPECT_NE(attribute_query_fault(words_of(AttributeQuery{{1, {{2, 4}, {4, 5}}}})), nullptr);
    EXPECT_NE(attribute_query_fault(words_of(AttributeQuery{{1, {{5, 5}, {4, 4}}}})), nullptr);
    EXPECT_NE(attribute_query_fault(words_of(AttributeQuery{{1, {{5, 5}, {5, 5}}}})), nullptr);
    // Every beginning of a query that ends within an item.
    const Words whole = words_of(AttributeQuery{{1, {{2, 3}, {5, 6}}}});
    for (std::size_t length = 1; length < whole.size(); ++length)
        EXPECT_NE(attribute_query_fault(std::span(whole).first(length)), nullptr) << length;
    for (const std::uint32_t count : {3U, 0x7fffffffU, 0xffffffffU}) {
        Words longer = whole;
        longer[2] = count | is_range;
        EXPECT_NE(attribute_query_fault(longer), nullptr) << count;
    }
}

// Random words never lead a check or an item out of the words.
TEST(MatchcountParts, AnyWordsAreChecked)
{
    std::mt19937_64 random(6);
    for (int i = 0; i < 200000; ++i) {
        Words any(random() % 14);
        for (std::uint32_t& word : any)
            word = static_cast<std::uint32_t>(random() % 3 | (random() % 4 == 0 ? is_range : 0));
        set_fault(any);
        attribute_set_fault(any);
        if (attribute_query_fault(any) != nullptr) continue;
        AttributeItems items(any);
        AttributeItem item;
        std::size_t seen = 0;
        while (items.next(&item)) seen += item_words + item.ranges * item.range_words();
        ASSERT_EQ(seen, any.size());
    }
}

// The searcher as the engine uses it.
class PartIndexes : public testing::TestWithParam<std::pair<ElementType, Metric>>
{
protected:
    static constexpr std::size_t row_count = 500;

    PartIndexes()
    {
        const ElementType element = GetParam().first;
        if (element == ElementType::set) {
            rows = random_sets(row_count, 12, 60, 8);
            queries = random_sets(25, 12, 60, 9);
        } else {
            rows = random_attribute_sets(row_count, 6, 20, 8);
            queries = random_queries(25, 6, 6, 20, 9);
        }
        index = std::make_unique<Index>(shape_of(element, GetParam().second), rows.view(), ParameterList(), pool);
        batch.lists = queries.view();
        batch.count = queries.count();
        batch.k = 20;
    }
    // The first rows in order, by compare_rows().
    std::vector<RowResult> in_order(std::size_t query, std::size_t most = row_count, RowBitmap dead = {}) const
    {
        std::vector<double> distances(row_count);
        index->searcher->compare_rows(queries.view().row(query), rows.view(), distances);
        std::vector<RowResult> all;
        for (std::uint32_t i = 0; i < row_count; ++i)
            if (!bit_is_set(dead, i)) all.push_back({distances[i], i});
        std::sort(all.begin(), all.end(), comes_before);
        all.resize(std::min(all.size(), most));
        return all;
    }
    std::vector<std::vector<RowResult>> search()
    {
        std::vector<std::vector<RowResult>> results;
        index->searcher->search(batch, results, pool);
        return results;
    }

    ThreadPool pool{2};
    OwnedRows rows;
    OwnedRows queries;
    std::unique_ptr<Index> index;
    SearchBatch batch;
};

TEST_P(PartIndexes, SearchInBatches)
{
    std::vector<std::uint64_t> dead((row_count + 63) / 64, 0x8000000000010101U);
    batch.dead = dead;
    const auto results = search();
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, dead)));
    batch.k = 0;
    for (const auto& found : search()) EXPECT_TRUE(found.empty());
}

TEST_P(PartIndexes, FindTheRowsWithinABound)
{
    for (const double within : {-7.0, -2.0, -1.5, 0.0, 0.5, 0.8, 1.0}) {
        batch.settings = {};
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

TEST_P(PartIndexes, ContinueUntilAllRowsWereOffered)
{
    for (const std::uint32_t k : {1U, 7U, 64U}) {
        SearchBatch one = batch;
        one.lists = queries.view().row(k % 25);
        one.count = 1;
        one.k = k;
        std::vector<RowResult> all;
        RowResult last{from_front, 0};
        while (true) {
            std::vector<RowResult> page;
            index->searcher->search_exact(one, last.distance, last.row, page, pool);
            if (page.empty()) break;
            all.insert(all.end(), page.begin(), page.end());
            last = page.back();
        }
        ASSERT_NO_FATAL_FAILURE(expect_equal(all, in_order(k % 25)));
    }
}

TEST_P(PartIndexes, EndWhenCancelled)
{
    CancelToken cancel;
    cancel.cancel();
    batch.cancel = &cancel;
    EXPECT_THROW(search(), Cancelled);
}

// So that a thread that serves clients leaves long queries to others.
TEST_P(PartIndexes, LongQueriesCostMore)
{
    const Words words(60000);
    const std::uint64_t offsets[2] = {0, words.size()};
    RowView query;
    query.count = 1;
    query.offsets = offsets;
    query.words = words.data();
    batch.count = 1;
    batch.lists = queries.view().row(0);
    const double usual = index->searcher->search_cost(batch);
    batch.lists = query;
    EXPECT_GT(index->searcher->search_cost(batch), 100 * usual);
}

TEST_P(PartIndexes, HaveNoOptions)
{
    const IndexShape shape = index->shape;
    EXPECT_EQ(index->builder->effective_options().count, 0U);
    EXPECT_EQ(index->searcher->result_kind(), ResultKind::exact);
    EXPECT_GT(index->searcher->memory_bytes(), row_count);
    const MethodFactory* factory = find_method(Method::matchcount);
    const ParameterList options =
        make_list({{"gram", 4}, {"hashes", 64}, {"epsilon", 50000}, {"delta", 50000}, {"buckets", 60}, {"lsh", 1}});
    for (std::uint32_t i = 0; i < options.count; ++i) {
        const Parameter& option = options.items[i];
        EXPECT_THROW(factory->make_builder(shape, make_list({{option.name, option.value}})), BadRequest);
    }
    EXPECT_THROW(factory->make_calibrator(shape, {}), BadRequest);
}

TEST_P(PartIndexes, RefuseMalformedArrays)
{
    const MethodFactory* factory = find_method(Method::matchcount);
    const std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, 2, 1),
                                            make_array_shape(array_list_words, ArrayType::u32, 8, 1)};
    const auto load = [&](std::uint64_t end, const Words& loaded) {
        const auto searcher = factory->make_searcher(index->shape, {}, arrays);
        const std::uint64_t offsets[2] = {0, end};
        searcher->write(array_list_offsets, 0, std::as_bytes(std::span(offsets)));
        searcher->write(array_list_words, 0, std::as_bytes(std::span(loaded)));
        EXPECT_THROW(searcher->write("links", 0, {}), BadRequest);
        searcher->finish_load(pool);
    };
    EXPECT_NO_THROW(load(8, words({1, 2, 3, 4})));
    EXPECT_THROW(load(8, words({3, 1, 2, 4})), BadRequest);
    EXPECT_THROW(load(8, words({1, 1, 1, 1})), BadRequest);
    EXPECT_THROW(load(7, words({1, 2, 3, 4})), BadRequest);
    EXPECT_THROW(load(9, words({1, 2, 3, 4})), BadRequest);
}

std::string kind_of_parts(const testing::TestParamInfo<std::pair<ElementType, Metric>>& kind)
{
    if (kind.param.first == ElementType::attribute_set) return "attributes";
    return kind.param.second == Metric::overlap ? "overlap" : "jaccard";
}
INSTANTIATE_TEST_SUITE_P(Matchcount, PartIndexes,
                         testing::Values(std::pair(ElementType::set, Metric::overlap),
                                         std::pair(ElementType::set, Metric::set_jaccard),
                                         std::pair(ElementType::attribute_set, Metric::overlap)),
                         kind_of_parts);

}  // namespace
}  // namespace pgwarp::test::matchcount_parts_test
