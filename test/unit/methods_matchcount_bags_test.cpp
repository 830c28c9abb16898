// The index method matchcount over bags: answers compared with the definition of BM25, statistics, and faults of words.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bag_fixture.h"
#include "methods/arrays.h"
#include "methods/matchcount/bag_search.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "protocol/search_bound.h"

namespace pgwarp::test
{
namespace
{

using matchcount::BagIndex;
using matchcount::PartQuery;

BagIndex index_of(const std::vector<Bag>& bags, ThreadPool& pool = caller_alone())
{
    return matchcount::make_bag_index(rows_of_parts(bags).view(), pool);
}

// All live rows in order of (distance, row).
std::vector<RowResult> all_in_order(const std::vector<Bag>& bags, const BagOfWeights& query, RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < bags.size(); ++i)
        if (!bit_is_set(dead, i)) all.push_back({plain_bm25(query, bags[i]), i});
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
void expect_right(const BagIndex& index, const Words& words, const std::vector<RowResult>& all, RowBitmap dead,
                  std::mt19937_64& random)
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
    expect_equal(search_bags(index, query), wanted);
}

// Equal bags and weights make ties.
TEST(MatchcountBags, RandomBagsAreAsDefined)
{
    std::mt19937_64 random(1);
    for (int number = 0; number < 2500; ++number) {
        const std::uint64_t universe = 1 + random() % 20;
        const bool sparse = universe % 2 == 0;
        std::vector<Bag> bags(random() % 40);
        for (Bag& bag : bags) bag = random_bag(random, random() % 8 == 0 ? 40 : 7, universe, sparse);
        const BagIndex index = index_of(bags);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        for (int i = 0; i < 10; ++i) {
            const BagOfWeights query = random_weights(random, 12, universe, sparse);
            ASSERT_EQ(bag_query_fault(words_of(query)), nullptr);
            const std::vector<RowResult> all = all_in_order(bags, query, dead);
            for (int j = 0; j < 10; ++j)
                ASSERT_NO_FATAL_FAILURE(expect_right(index, words_of(query), all, dead, random)) << "index " << number;
        }
    }
}

// Many slices and blocks of postings, where most postings are passed over.
TEST(MatchcountBags, RowsOfManySlicesAreAsDefined)
{
    std::mt19937_64 random(2);
    ThreadPool pool(3);
    std::vector<Bag> bags(30000);
    for (Bag& bag : bags) bag = random_bag(random, random() % 8 == 0 ? 100 : 20, 5000);
    const BagIndex index = index_of(bags, pool);
    std::vector<std::uint64_t> dead((bags.size() + 63) / 64);
    for (std::uint64_t& word : dead) word = random() & random() & random();
    for (int i = 0; i < 60; ++i) {
        const BagOfWeights query = random_weights(random, i % 10 == 0 ? 300 : 8, 5000);
        const std::vector<RowResult> all = all_in_order(bags, query, dead);
        for (int j = 0; j < 5; ++j)
            ASSERT_NO_FATAL_FAILURE(expect_right(index, words_of(query), all, dead, random)) << "query " << i;
    }
}

TEST(MatchcountBags, ThreadsMakeTheSameIndex)
{
    std::mt19937_64 random(3);
    std::vector<Bag> bags(20000);
    for (Bag& bag : bags) bag = random_bag(random, 60, 3000);
    ThreadPool pool(4);
    const BagIndex one = index_of(bags);
    const BagIndex many = index_of(bags, pool);
    ASSERT_GT(one.lists.postings(), 500000U);
    EXPECT_EQ(one.frequencies, many.frequencies);
    EXPECT_EQ(one.lengths, many.lengths);
}

TEST(MatchcountBags, TermsAreCounted)
{
    const std::vector<Bag> bags = {{{1, 2}, {5, 1}}, {{5, 7}}, {}, {{5, 1}, {9, 255}}};
    const TermCounts counts = count_terms_of(index_of(bags), std::vector<std::uint64_t>{5, 1, 4, 9});
    EXPECT_EQ(counts.rows, 4U);
    EXPECT_EQ(counts.length, 266U);
    EXPECT_EQ(counts.of_terms, (std::vector<std::uint64_t>{3, 1, 0, 1}));
}

// k1 = 1.2, b = .75, average length 4; weight (k1 + 1) ln(1 + (N - n + .5) / (n + .5)), with N = 10, n = 3.
TEST(MatchcountBags, TheScoreIsBm25)
{
    const double idf = std::log(1 + 7.5 / 3.5);
    const BagOfWeights query{1.2 * 0.25, 1.2 * 0.75 / 4, {{7, 2.2 * idf}}};
    const Bag bag{{7, 2}, {8, 4}};
    const double bm25 = idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 6 / 4));
    EXPECT_NEAR(score_of_bag(words_of(query), words_of(bag)), bm25, 1e-12);
    EXPECT_NEAR(-plain_bm25(query, bag), bm25, 1e-12);
}

TEST(MatchcountBags, FaultsOfWordsAreSeen)
{
    const auto numbers = [](std::initializer_list<std::uint64_t> list) {
        Words words;
        for (const std::uint64_t number : list) append_number(number, words);
        return words;
    };
    EXPECT_EQ(bag_fault({}), nullptr);
    EXPECT_EQ(bag_fault(numbers({0x101, 0x2ff})), nullptr);
    EXPECT_NE(bag_fault(numbers({0x100})), nullptr);
    EXPECT_NE(bag_fault(numbers({0x101, 0x102})), nullptr);
    EXPECT_NE(bag_fault(numbers({0x201, 0x101})), nullptr);
    EXPECT_NE(bag_fault(Words{1}), nullptr);
    const BagOfWeights query{1, 0.5, {{3, 2.0}, {4, 1.0}}};
    EXPECT_EQ(bag_query_fault({}), nullptr);
    EXPECT_EQ(bag_query_fault(words_of(query)), nullptr);
    const Words whole = words_of(query);
    for (const std::size_t size : {1U, 2U, 5U, 6U, 11U})
        EXPECT_NE(bag_query_fault(std::span(whole).first(size)), nullptr);
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double wrong : {-1.0, nan, inf, 1e7}) {
        EXPECT_NE(bag_query_fault(words_of(BagOfWeights{wrong, 0, {}})), nullptr);
        EXPECT_NE(bag_query_fault(words_of(BagOfWeights{0, wrong, {}})), nullptr);
    }
    for (const double wrong : {0.0, -1.0, nan, inf, 1e10, 1e-10})
        EXPECT_NE(bag_query_fault(words_of(BagOfWeights{0, 0, {{1, wrong}}})), nullptr);
    Words frequency = whole;
    frequency[5] |= 1;
    EXPECT_NE(bag_query_fault(frequency), nullptr);
    Words descending = whole;
    std::swap_ranges(descending.begin() + 4, descending.begin() + 8, descending.begin() + 8);
    EXPECT_NE(bag_query_fault(descending), nullptr);
}

// Weights at the limits: rows with a term come before the others.
TEST(MatchcountBags, TheLeastScoreIsLargerThanNone)
{
    Bag longest;
    for (std::uint64_t term = 1; term <= 32768; ++term) longest[term] = most_frequency;
    longest[9] = 1;
    const BagOfWeights query{most_length_correction, most_length_correction, {{9, least_term_weight}}};
    ASSERT_EQ(bag_query_fault(words_of(query)), nullptr);
    ASSERT_EQ(bag_fault(words_of(longest)), nullptr);
    PartQuery wanted;
    const Words words = words_of(query);
    wanted.words = words;
    wanted.k = 3;
    const auto found = search_bags(index_of({Bag{{1, 1}}, longest}), wanted);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].row, 1U);
    EXPECT_LT(found[0].distance, 0);
    EXPECT_EQ(found[1].distance, 0);
}

// As the engine loads and searches it.
class BagIndexes : public testing::Test
{
protected:
    static constexpr std::size_t row_count = 500;

    BagIndexes() : rows(random_bags(row_count, 12, 60, 8)), queries(random_bag_queries(25, 12, 60, 9))
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
            if (!bit_is_set(dead, i)) all.push_back({distances[i], i});
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
    Index index{Index::shape_of(Method::matchcount, Metric::bm25, 0, ElementType::bag), rows.view(), {}, pool};
    SearchBatch batch;
};

TEST_F(BagIndexes, SearchInBatches)
{
    std::vector<std::uint64_t> dead((row_count + 63) / 64, 0x8000000000010101U);
    batch.dead = dead;
    const auto results = search();
    for (std::size_t q = 0; q < batch.count; ++q)
        ASSERT_NO_FATAL_FAILURE(expect_equal(results[q], in_order(q, batch.k, dead)));
    batch.k = 0;
    for (const auto& found : search()) EXPECT_TRUE(found.empty());
}

TEST_F(BagIndexes, FindTheRowsWithinABound)
{
    for (const double within : {-30.0, -7.0, -1.5, 0.0, 0.5}) {
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

TEST_F(BagIndexes, ContinueUntilAllRowsWereOffered)
{
    for (const std::uint32_t k : {1U, 7U, 64U}) {
        SearchBatch one = batch;
        one.lists = queries.view().row(k % 25);
        one.count = 1;
        one.k = k;
        std::vector<RowResult> all;
        RowResult last{-std::numeric_limits<double>::infinity(), 0};
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

TEST_F(BagIndexes, EndWhenCancelled)
{
    CancelToken cancel;
    cancel.cancel();
    batch.cancel = &cancel;
    EXPECT_THROW(search(), Cancelled);
}

TEST_F(BagIndexes, RefuseMalformedArrays)
{
    const std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, 2, 1),
                                            make_array_shape(array_list_words, ArrayType::u32, 4, 1)};
    const auto load = [&](const Words& loaded) {
        const auto searcher = find_method(Method::matchcount)->make_searcher(index.shape, {}, arrays);
        const std::uint64_t offsets[2] = {0, 4};
        searcher->write(array_list_offsets, 0, std::as_bytes(std::span(offsets)));
        searcher->write(array_list_words, 0, std::as_bytes(std::span(loaded)));
        searcher->finish_load(pool);
    };
    EXPECT_NO_THROW(load({0, 0x101, 0, 0x201}));
    EXPECT_THROW(load({0, 0x100, 0, 0x201}), BadRequest);
    EXPECT_THROW(load({0, 0x101, 0, 0x102}), BadRequest);
}

TEST_F(BagIndexes, CountTerms)
{
    const std::uint64_t term = 0;
    const TermCounts counts = index.searcher->count_terms({&term, 1});
    std::uint64_t having = 0;
    for (std::size_t i = 0; i < row_count; ++i) {
        const auto words = rows.view().list(i);
        having += !words.empty() && term_of(part_number(words.data())) == term ? 1 : 0;
    }
    EXPECT_EQ(counts.rows, row_count);
    EXPECT_EQ(counts.of_terms, std::vector<std::uint64_t>{having});
    EXPECT_GT(having, 0U);
    const OwnedRows sets = random_sets(10, 5, 20, 1);
    const Index of_sets(Index::shape_of(Method::matchcount, Metric::overlap, 0, ElementType::set), sets.view(), {},
                        pool);
    EXPECT_THROW(of_sets.searcher->count_terms({&term, 1}), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test
