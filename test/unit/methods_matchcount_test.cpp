// The index method matchcount over texts: answers compared with a plain scan.
#include <gtest/gtest.h>

#include <limits>

#include "methods/arrays.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/text_search.h"
#include "methods/ordered_scan.h"
#include "methods_fixture.h"
#include "protocol/search_bound.h"
#include "text_fixture.h"

namespace pgwarp::test::matchcount_test
{
namespace
{

using matchcount::GramForm;

constexpr double from_front = -std::numeric_limits<double>::infinity();

IndexShape text_shape()
{
    return Index::shape_of(Method::matchcount, Metric::edit, 0, ElementType::text);
}

// All live rows in order of (distance, row).
std::vector<RowResult> all_in_order(const std::vector<Text>& texts, const Text& query, RowBitmap dead = {})
{
    std::vector<RowResult> all;
    for (std::uint32_t i = 0; i < texts.size(); ++i)
        if (!bit_is_set(dead, i)) all.push_back({static_cast<double>(plain_distance(query, texts[i])), i});
    std::sort(all.begin(), all.end(), comes_before);
    return all;
}

void expect_equal(const std::vector<RowResult>& found, const std::vector<RowResult>& wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].row, wanted[i].row) << "result " << i;
        ASSERT_EQ(found[i].distance, wanted[i].distance) << "result " << i;
    }
}

// Texts of an index, many of them equal or near to others.
std::vector<Text> related_texts(std::mt19937& random, std::size_t count, std::size_t longest, std::uint32_t letters)
{
    std::vector<Text> texts;
    while (texts.size() < count) {
        if (texts.empty() || random() % 3 == 0) {
            texts.push_back(random_text(random, random() % (longest + 1), letters));
        } else {
            texts.push_back(edited(random, texts[random() % texts.size()], random() % 4, letters));
        }
    }
    return texts;
}

// Small indexes with few candidates, so that every part of the search decides some answers.
TEST(MatchcountSearch, AnswersAreThoseOfAScan)
{
    ThreadPool pool(2);
    std::mt19937 random(3);
    matchcount::CountWorkspace workspace;
    std::uint64_t candidates = 0;
    std::uint64_t proved = 0;
    std::uint64_t cases = 0;
    for (int index_number = 0; index_number < 1000; ++index_number) {
        const std::uint32_t letters = 1 + random() % 6;
        const std::size_t longest = random() % 4 == 0 ? 90 : 14;
        const std::vector<Text> texts = related_texts(random, random() % 60, longest, letters);
        const GramForm form{2 + static_cast<std::uint32_t>(random() % 5), random() % 4 == 0 ? 4U : 32U};
        const matchcount::TextIndex index = make_text_index({text_rows(texts).view(), pool}, form, pool);
        std::vector<std::uint64_t> dead(random() % 3 == 0 ? 1 : 0);
        for (std::uint64_t& word : dead) word = random() % 4 == 0 ? ~std::uint64_t{0} : random() & random();
        const std::vector<std::uint64_t> dead_places = index.texts.bitmap_of_places(dead);
        for (int query_number = 0; query_number < 12; ++query_number) {
            const bool near = !texts.empty() && random() % 3 > 0;
            const Text text = near ? edited(random, texts[random() % texts.size()], random() % 6, letters)
                                   : random_text(random, random() % 20, letters);
            const std::vector<std::uint32_t> words = packed(text);
            const std::vector<RowResult> all = all_in_order(texts, text, dead);
            for (int settings = 0; settings < 10; ++settings, ++cases) {
                matchcount::TextQuery query;
                query.text = view_text(words);
                query.k = 1 + random() % (random() % 4 == 0 ? 70 : 4);
                query.dead = dead_places;
                query.least_candidates = 1 + random() % 12;
                if (random() % 3 == 0) query.within = random() % 12;
                const auto is_within = [&](const RowResult& row) { return row.distance <= query.within; };
                const auto end = std::partition_point(all.begin(), all.end(), is_within);
                auto after = all.begin();
                if (random() % 5 == 0 && !all.empty()) {
                    after += static_cast<std::ptrdiff_t>(random() % all.size());
                    query.after = *after++;
                }
                const std::size_t left = static_cast<std::size_t>(std::max(end - after, std::ptrdiff_t{0}));
                const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(query.k, left));
                matchcount::SearchPath path;
                expect_equal(search_texts(index, query, workspace, pool, &path), {after, after + size});
                if (HasFatalFailure()) return;
                candidates += path.candidates ? 1 : 0;
                proved += path.proved ? 1 : 0;
            }
        }
    }
    EXPECT_GE(cases, 100000U);
    EXPECT_GT(cases - candidates, 10000U);
    EXPECT_GT(proved, 1000U);
    EXPECT_GT(candidates - proved, 10000U);
}

// An index that is built, stored and loaded.
Index text_index(const std::vector<Text>& texts, ThreadPool& pool, std::int64_t gram = 3)
{
    return Index(text_shape(), text_rows(texts).view(), make_list({{"gram", gram}}), pool);
}

// A batch of queries, with the memory that it points to.
struct Queries {
    explicit Queries(const std::vector<Text>& texts, std::uint32_t k) : rows(text_rows(texts))
    {
        batch.lists = rows.view();
        batch.count = texts.size();
        batch.k = k;
    }
    OwnedRows rows;
    SearchBatch batch;
};

std::vector<std::vector<RowResult>> search(const Searcher& searcher, const SearchBatch& batch, ThreadPool& pool)
{
    std::vector<std::vector<RowResult>> results;
    searcher.search(batch, results, pool);
    return results;
}

// More texts than the candidates of a search.
std::vector<Text> many_texts(unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<Text> texts = related_texts(random, 3000, 40, 12);
    texts[5] = U"";
    texts[6].assign(1, U'x');
    texts[7] = U"\U0001f600\u03b1 mixed";
    texts[8] = random_text(random, 700, 12);
    return texts;
}

const std::vector<Text> odd_queries = {
    U"", U"x", U"ab", U"\U0001f600", U"aaaaaaaaaa", Text(900, U'c'), U"abcdefghijkl", Text(300, U'z')};

TEST(Matchcount, FindsTheRowsOfAScan)
{
    const std::vector<Text> texts = many_texts(4);
    std::mt19937 random(5);
    std::vector<Text> asked = odd_queries;
    while (asked.size() < 40) asked.push_back(edited(random, texts[random() % texts.size()], random() % 20, 12));
    asked[20] = texts[8];
    std::vector<std::vector<RowResult>> all;
    for (const Text& text : asked) all.push_back(all_in_order(texts, text));
    for (const std::int64_t gram : {2, 3, 6}) {
        ThreadPool pool(2);
        const Index index = text_index(texts, pool, gram);
        EXPECT_EQ(index.builder->effective_options().get("gram", 0), gram);
        EXPECT_EQ(index.searcher->result_kind(), ResultKind::exact);
        for (const std::uint32_t k : {1U, 10U, 300U, 4000U}) {
            const Queries queries(asked, k);
            const auto found = search(*index.searcher, queries.batch, pool);
            ASSERT_EQ(found.size(), asked.size());
            for (std::size_t q = 0; q < asked.size(); ++q) {
                const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(k, texts.size()));
                expect_equal(found[q], {all[q].begin(), all[q].begin() + size});
                if (HasFatalFailure()) return;
            }
        }
    }
}

// A bound of the distance makes answers complete: no text within it is missing, and none beyond it is compared twice.
TEST(Matchcount, FindsAllWithinABound)
{
    const std::vector<Text> texts = many_texts(24);
    ThreadPool pool(2);
    const Index index = text_index(texts, pool);
    std::mt19937 random(25);
    std::vector<Text> asked = odd_queries;
    while (asked.size() < 40) asked.push_back(edited(random, texts[random() % texts.size()], random() % 9, 12));
    for (const double within : {-1.0, 0.0, 0.5, 2.0, 2.9, 7.0, 30.0, 1e9, 1e300}) {
        Queries queries(asked, 4000);
        set_within(&queries.batch.settings, within);
        const auto found = search(*index.searcher, queries.batch, pool);
        for (std::size_t q = 0; q < asked.size(); ++q) {
            std::vector<RowResult> wanted = all_in_order(texts, asked[q]);
            std::erase_if(wanted, [&](const RowResult& row) { return row.distance > within; });
            expect_equal(found[q], wanted);
            if (HasFatalFailure()) return;
        }
    }
}

// Titles of some length within a small distance: the grams alone tell which few texts are compared.
TEST(MatchcountSearch, ComparesFewTextsWithinASmallBound)
{
    ThreadPool pool(2);
    std::mt19937 random(26);
    std::vector<Text> texts;
    while (texts.size() < 4000) texts.push_back(random_text(random, 38 + random() % 5, 26));
    const GramForm form;
    const matchcount::TextIndex index = make_text_index({text_rows(texts).view(), pool}, form, pool);
    matchcount::CountWorkspace workspace;
    const std::vector<std::uint32_t> words = packed(edited(random, texts[7], 2, 26));
    matchcount::TextQuery query;
    query.text = view_text(words);
    query.k = 10;
    query.within = 2;
    matchcount::SearchPath path;
    const std::vector<RowResult> found = search_texts(index, query, workspace, pool, &path);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].row, 7U);
    EXPECT_FALSE(path.candidates);
    EXPECT_LE(path.compared, 3U);
}

TEST(Matchcount, LeavesDeadRowsOut)
{
    const std::vector<Text> texts = many_texts(6);
    ThreadPool pool(2);
    const Index index = text_index(texts, pool);
    std::mt19937 random(7);
    std::vector<std::uint64_t> dead((texts.size() + 63) / 64);
    for (const std::uint32_t share : {2U, 1U}) {
        for (std::uint64_t& word : dead) word = share == 1 ? ~std::uint64_t{0} : random();
        std::vector<Text> asked = odd_queries;
        while (asked.size() < 20) asked.push_back(edited(random, texts[random() % texts.size()], 3, 12));
        Queries queries(asked, 20);
        queries.batch.dead = dead;
        queries.batch.dead_version = share == 1 ? new_bitmap_version() : 0;
        const auto found = search(*index.searcher, queries.batch, pool);
        for (std::size_t q = 0; q < asked.size(); ++q) {
            std::vector<RowResult> wanted = all_in_order(texts, asked[q], dead);
            wanted.resize(std::min<std::size_t>(20, wanted.size()));
            EXPECT_EQ(wanted.empty(), share == 1);
            expect_equal(found[q], wanted);
            if (HasFatalFailure()) return;
        }
    }
}

// So that a thread that serves clients leaves long queries to others.
TEST(Matchcount, LongQueriesCostMore)
{
    ThreadPool pool(1);
    const Index index = text_index(many_texts(9), pool);
    const Queries usual({Text(20, U'a')}, 1);
    const Queries longer({Text(60000, U'a')}, 1);
    EXPECT_GT(index.searcher->search_cost(longer.batch), 100 * index.searcher->search_cost(usual.batch));
}

TEST(Matchcount, ContinuationsOfferEveryRowOnce)
{
    const std::vector<Text> texts = many_texts(8);
    ThreadPool pool(2);
    const Index index = text_index(texts, pool);
    for (const Text& text : {Text(U"abcabcabc"), Text(), Text(400, U'd')}) {
        const Queries queries({text}, 97);
        std::vector<RowResult> all = search(*index.searcher, queries.batch, pool)[0];
        for (;;) {
            std::vector<RowResult> more;
            index.searcher->search_exact(queries.batch, all.back().distance, all.back().row, more, pool);
            if (more.empty()) break;
            all.insert(all.end(), more.begin(), more.end());
        }
        expect_equal(all, all_in_order(texts, text));
        std::vector<RowResult> front;
        index.searcher->search_exact(queries.batch, from_front, 0, front, pool);
        all.resize(97);
        expect_equal(front, all);
    }
}

// Texts that share more keywords than a small counter holds.
TEST(Matchcount, CountsOfLongTextsStopAtTheirLargest)
{
    std::mt19937 random(13);
    const Text text = random_text(random, 330, 20);
    std::vector<Text> texts;
    while (texts.size() < 1500) texts.push_back(edited(random, text, random() % 20, 20));
    ThreadPool pool(1);
    const Index index = text_index(texts, pool, 2);
    const Queries queries({text}, 5);
    const std::vector<RowResult> all = all_in_order(texts, text);
    for (const std::ptrdiff_t done : {1, 150, 700}) {
        std::vector<RowResult> found;
        const RowResult& last = all[static_cast<std::size_t>(done) - 1];
        index.searcher->search_exact(queries.batch, last.distance, last.row, found, pool);
        expect_equal(found, {all.begin() + done, all.begin() + done + 5});
    }
}

TEST(Matchcount, AnswersDoNotDependOnThreads)
{
    const std::vector<Text> texts = many_texts(9);
    ThreadPool one(1);
    ThreadPool four(4);
    const Index alone = text_index(texts, one);
    const Index shared = text_index(texts, four);
    for (const ArrayShape& array : alone.builder->arrays()) EXPECT_EQ(alone.contents(array), shared.contents(array));
    EXPECT_EQ(alone.searcher->memory_bytes(), shared.searcher->memory_bytes());
    for (std::size_t first = 0; first + 50 < texts.size(); first += 350) {
        const auto at = texts.begin() + static_cast<std::ptrdiff_t>(first);
        const Queries many({at, at + 50}, 7);
        const Queries single({*at}, 7);
        const auto wanted = search(*alone.searcher, many.batch, one);
        const auto found = search(*shared.searcher, many.batch, four);
        for (std::size_t q = 0; q < wanted.size(); ++q) expect_equal(found[q], wanted[q]);
        expect_equal(search(*shared.searcher, single.batch, four)[0], wanted[0]);
    }
}

TEST(Matchcount, ComparesRowsThatItDoesNotHold)
{
    ThreadPool pool(1);
    const Index index = text_index({}, pool);
    const std::vector<Text> texts = {U"", U"kitten", U"\u4e00\u4e01", U"sitting"};
    const OwnedRows rows = text_rows(texts);
    const OwnedRows query = text_rows({U"sitting"});
    ASSERT_TRUE(index.searcher->compares_rows());
    std::vector<double> distances(texts.size());
    index.searcher->compare_rows(query.view(), rows.view(), distances);
    EXPECT_EQ(distances, (std::vector<double>{7, 3, 7, 0}));
}

TEST(Matchcount, IndexesOfFewRows)
{
    ThreadPool pool(2);
    for (const std::vector<Text>& texts : {std::vector<Text>{}, std::vector<Text>{U""}, std::vector<Text>{U"b", U""}}) {
        const Index index = text_index(texts, pool);
        const Queries queries({U"", U"b", U"long enough to share nothing"}, 3);
        const auto found = search(*index.searcher, queries.batch, pool);
        for (std::size_t q = 0; q < 3; ++q)
            expect_equal(found[q], all_in_order(texts, q == 0 ? U"" : q == 1 ? U"b" : U"long enough to share nothing"));
    }
}

// A merge appends the arrays of new rows to those of the index.
TEST(Matchcount, SearchesMergedArrays)
{
    const std::vector<Text> texts = many_texts(10);
    const std::ptrdiff_t old_rows = 1700;
    ThreadPool pool(2);
    const Index old(text_shape(), text_rows({texts.begin(), texts.begin() + old_rows}).view(), {}, pool);
    const Index added(text_shape(), text_rows({texts.begin() + old_rows, texts.end()}).view(), {}, pool);
    std::vector<ArrayShape> arrays = old.builder->arrays();
    const std::vector<ArrayShape> added_arrays = added.builder->arrays();
    std::vector<std::vector<std::byte>> bytes;
    for (ArrayShape& array : arrays) {
        bytes.push_back(old.contents(array));
        const ArrayShape* more = find_array(added_arrays, array.name);
        ASSERT_NE(more, nullptr);
        std::vector<std::byte> appended = added.contents(*more);
        if (std::string(array.name) == array_list_offsets) {
            // The first offset is where the words go on.
            const std::uint64_t words = arrays.back().rows;
            for (std::size_t at = 0; at < appended.size(); at += sizeof(words)) {
                std::uint64_t offset = 0;
                std::memcpy(&offset, appended.data() + at, sizeof(offset));
                offset += words;
                std::memcpy(appended.data() + at, &offset, sizeof(offset));
            }
            appended.erase(appended.begin(), appended.begin() + sizeof(words));
        }
        array.rows += appended.size() / (array.bytes() / array.rows);
        bytes.back().insert(bytes.back().end(), appended.begin(), appended.end());
    }
    const auto merged = find_method(Method::matchcount)->make_searcher(text_shape(), {}, arrays);
    for (std::size_t i = 0; i < arrays.size(); ++i) merged->write(arrays[i].name, 0, bytes[i]);
    merged->finish_load(pool);
    const Queries queries({texts[3], texts[2000], U"abc"}, 10);
    const auto found = search(*merged, queries.batch, pool);
    for (std::size_t q = 0; q < 3; ++q) {
        std::vector<RowResult> wanted = all_in_order(texts, q == 0 ? texts[3] : q == 1 ? texts[2000] : U"abc");
        wanted.resize(10);
        expect_equal(found[q], wanted);
    }
}

TEST(Matchcount, StopsWhenCancelled)
{
    const std::vector<Text> texts = many_texts(11);
    ThreadPool pool(2);
    const Index index = text_index(texts, pool);
    CancelToken cancel;
    cancel.cancel();
    for (const std::size_t count : {std::size_t{1}, std::size_t{9}}) {
        Queries queries(std::vector<Text>(count, U"abcabc"), 10);
        queries.batch.cancel = &cancel;
        EXPECT_THROW(search(*index.searcher, queries.batch, pool), Cancelled);
        std::vector<RowResult> results;
        EXPECT_THROW(index.searcher->search_exact(queries.batch, 3, 4, results, pool), Cancelled);
        queries.batch.cancel = nullptr;
        EXPECT_EQ(search(*index.searcher, queries.batch, pool)[0].size(), 10U);
    }
}

// Arrays as they might come from damaged pages.
class DamagedArrays : public testing::Test
{
protected:
    DamagedArrays()
    {
        const OwnedRows rows = text_rows({U"first", U"", U"second text", U"\u4e00\u4e01\u4e02"});
        const RowView view = rows.view();
        offsets.assign(view.offsets, view.offsets + view.count + 1);
        words.assign(view.words, view.words + view.word_count());
    }
    // Loads the arrays, and searches them where they are accepted.
    void load()
    {
        const std::vector<ArrayShape> arrays = {make_array_shape(array_list_offsets, ArrayType::u64, offsets.size(), 1),
                                                make_array_shape(array_list_words, ArrayType::u32, words.size(), 1)};
        const auto searcher = find_method(Method::matchcount)->make_searcher(text_shape(), {}, arrays);
        searcher->write(array_list_offsets, 0, std::as_bytes(std::span(offsets)));
        searcher->write(array_list_words, 0, std::as_bytes(std::span(words)));
        searcher->finish_load(pool);
        const Queries queries({U"second", U""}, 3);
        EXPECT_EQ(search(*searcher, queries.batch, pool).size(), 2U);
    }

    ThreadPool pool{2};
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> words;
};

TEST_F(DamagedArrays, AreRefused)
{
    load();
    const std::vector<std::uint64_t> good_offsets = offsets;
    const std::vector<std::uint32_t> good_words = words;
    const auto refused = [&](const auto& damage) {
        offsets = good_offsets;
        words = good_words;
        damage();
        EXPECT_THROW(load(), BadRequest);
    };
    refused([&] { words.pop_back(); });  // truncated
    refused([&] { words.clear(); });
    refused([&] { offsets.pop_back(); });
    refused([&] { offsets.clear(); });
    refused([&] { offsets[1] += 1; });  // a text of another length than its words
    refused([&] { std::swap(offsets[1], offsets[3]); });
    refused([&] { offsets[2] = ~std::uint64_t{0}; });
    refused([&] { offsets[2] = offsets[1]; });             // a text without its length
    refused([&] { words[0] += 4; });                       // more characters than words
    refused([&] { words[0] |= 1U << text_length_bits; });  // wider characters
    refused([&] { words[0] |= 3U << text_length_bits; });  // of an unknown width
    refused([&] { words[0] = max_text_characters + 1; });
}

TEST_F(DamagedArrays, NeverCrash)
{
    std::mt19937 random(12);
    const std::vector<std::uint64_t> good_offsets = offsets;
    const std::vector<std::uint32_t> good_words = words;
    std::size_t refused = 0;
    for (int i = 0; i < 3000; ++i) {
        offsets = good_offsets;
        words = good_words;
        const std::uint32_t bit = random();
        if (bit % 3 == 0) {
            offsets[random() % offsets.size()] ^= std::uint64_t{1} << (bit % 64);
        } else {
            words[random() % words.size()] ^= 1U << (bit % 32);
        }
        try {
            load();
        } catch (const BadRequest&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000U);
    EXPECT_LT(refused, 3000U);
}

TEST(Matchcount, RefusesWhatItDoesNotKnow)
{
    const MethodFactory& factory = *find_method(Method::matchcount);
    for (const std::int64_t gram : {1, 7, -1})
        EXPECT_THROW(factory.make_builder(text_shape(), make_list({{"gram", gram}})), BadRequest);
    const std::vector<ArrayShape> others = {make_array_shape(array_vectors, ArrayType::f32, 3, 1)};
    EXPECT_THROW(factory.make_searcher(text_shape(), {}, others), BadRequest);
    const auto searcher = factory.make_searcher(text_shape(), {}, {});
    EXPECT_THROW(searcher->write(array_vectors, 0, {}), BadRequest);
}

}  // namespace
}  // namespace pgwarp::test::matchcount_test
