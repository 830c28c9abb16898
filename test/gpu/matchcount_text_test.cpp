// Text on the device: its answers are those of the CPU, in every order of equal distances.
#include "matchcount/text_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "both_searchers.h"
#include "matchcount/text_alphabet.h"
#include "methods/matchcount/matchcount.h"
#include "methods/matchcount/one_round.h"
#include "protocol/format.h"
#include "protocol/search_bound.h"
#include "shared_context.h"
#include "text_fixture.h"

namespace pgwarp::test
{
namespace
{

IndexShape text_shape()
{
    IndexShape shape{};
    shape.method = Method::matchcount;
    shape.metric = static_cast<std::uint8_t>(Metric::edit);
    shape.element = ElementType::text;
    return shape;
}

class BothIndexes : public BothSearchers
{
public:
    explicit BothIndexes(const OwnedRows& rows, cuda::Context& context = shared_context())
    {
        const std::vector<ArrayShape> arrays = arrays_of(rows);
        set(matchcount::make_text_searcher(text_shape(), {}, arrays),
            cuda::make_text_searcher(context, text_shape(), arrays));
        load(rows, arrays);
    }
};

// One of `one_of` rows is dead.
std::vector<std::uint64_t> random_dead(std::size_t rows, unsigned one_of, std::mt19937& random)
{
    std::vector<std::uint64_t> dead((rows + 63) / 64);
    for (std::size_t i = 0; i < rows; ++i)
        if (random() % one_of == 0) set_bit(dead, i);
    return dead;
}

// Texts of one index for a test: few letters or many, of any width, some of them edits of others.
class RandomTexts
{
public:
    RandomTexts(unsigned seed, std::size_t longest) : random_(seed), longest_(longest)
    {
        constexpr char32_t firsts[] = {U'a', 0xf0, 0x3b1, 0x4e00, 0x1f600};
        first_ = firsts[random_() % std::size(firsts)];
        letters_ = 1 + random_() % (random_() % 4 == 0 ? 700 : 6);
    }
    Text next(const std::vector<Text>& before)
    {
        if (before.empty() || random_() % 2 == 0)
            return random_text(random_, random_() % (longest_ + 1), letters_, first_);
        return edited(random_, before[random_() % before.size()], random_() % 6, letters_);
    }
    std::vector<Text> some(std::size_t count)
    {
        std::vector<Text> texts;
        while (texts.size() < count) texts.push_back(next(texts));
        return texts;
    }
    // Near these and far from them.
    std::vector<Text> queries(const std::vector<Text>& texts, std::size_t count)
    {
        std::vector<Text> queries;
        while (queries.size() < count) queries.push_back(next(texts));
        return queries;
    }
    std::mt19937& random() { return random_; }

private:
    std::mt19937 random_;
    std::size_t longest_;
    char32_t first_;
    std::uint32_t letters_;
};

TEST(DeviceText, RandomCasesEqualTheCpus)
{
    constexpr std::size_t queries_each = 512;
    for (unsigned seed = 0; seed < 200 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        constexpr std::size_t longest[] = {3, 10, 20, 40, 80};
        RandomTexts texts(seed, longest[seed % std::size(longest)]);
        std::mt19937& random = texts.random();
        const std::vector<Text> rows = texts.some(random() % (seed % 8 == 0 ? 3 : 200));
        BothIndexes both(text_rows(rows));
        const OwnedRows queries = text_rows(texts.queries(rows, queries_each));
        SearchBatch batch = batch_of(queries, 1 + random() % (seed % 4 == 0 ? 2 * rows.size() + 1 : 12));
        const std::vector<std::uint64_t> dead = random_dead(rows.size(), 4, random);
        if (seed % 3 == 0 && !rows.empty()) {
            batch.dead = dead;
            batch.dead_version = new_bitmap_version();
        }
        both.expect_same(batch);
        batch.count = 1;
        if (seed % 5 == 0) both.expect_same_continuations(batch);
    }
}

// By plain dynamic programming.
TEST(DeviceText, AMillionSmallCasesAreAsDefined)
{
    std::size_t cases = 0;
    for (unsigned seed = 1000; seed < 1500 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomTexts texts(seed, 12);
        const std::vector<Text> rows = texts.some(1 + texts.random()() % 16);
        BothIndexes both(text_rows(rows));
        const std::vector<Text> asked = texts.queries(rows, 2000);
        const OwnedRows queries = text_rows(asked);
        const SearchBatch batch = batch_of(queries, 1 + texts.random()() % 18);
        std::vector<std::vector<RowResult>> found;
        both.device().search(batch, found, both.pool());
        std::vector<std::vector<RowResult>> defined(asked.size());
        both.pool().parallel_for(asked.size(), 64, [&](std::size_t begin, std::size_t end) {
            for (std::size_t q = begin; q < end; ++q) {
                for (std::uint32_t row = 0; row < rows.size(); ++row)
                    defined[q].push_back({static_cast<double>(plain_distance(asked[q], rows[row])), row});
                std::ranges::stable_sort(defined[q], {}, &RowResult::distance);
                defined[q].resize(std::min<std::size_t>(rows.size(), batch.k));
            }
        });
        for (std::size_t q = 0; q < asked.size() && !HasFailure(); ++q, ++cases) {
            SCOPED_TRACE("query " + std::to_string(q));
            expect_equal(found[q], defined[q]);
        }
    }
    EXPECT_EQ(cases, 1000000U);
}

// Distances that need bands of every width, and more than any band.
TEST(DeviceText, LongTextsEqualTheCpus)
{
    for (const std::size_t longest : {100, 200, 300, 480, 700, 2300}) {
        RandomTexts texts(static_cast<unsigned>(longest), longest);
        const std::vector<Text> rows = texts.some(300);
        BothIndexes both(text_rows(rows));
        const OwnedRows queries = text_rows(texts.queries(rows, longest > 1000 ? 12 : 40));
        for (const std::uint32_t k : {1, 10, 400}) both.expect_same(batch_of(queries, k));
    }
}

// So many texts that the last step is launched for some queries at a time, by the distances so far.
TEST(DeviceText, LargeBatchesEqualTheCpus)
{
    std::mt19937 random(11);
    std::vector<Text> rows;
    while (rows.size() < 100000) rows.push_back(random_text(random, 30 + random() % 30, 12));
    std::vector<Text> asked;
    while (asked.size() < 500) asked.push_back(edited(random, rows[random() % rows.size()], random() % 16, 12));
    BothIndexes both(text_rows(rows));
    const OwnedRows queries = text_rows(asked);
    for (const std::uint32_t k : {1, 4}) both.expect_same(batch_of(queries, k));
}

// More characters than ids, so that some share one.
TEST(DeviceText, SharedIdsEqualTheCpus)
{
    std::mt19937 random(7);
    std::vector<Text> rows;
    for (int i = 0; i < 2000; ++i) rows.push_back(random_text(random, random() % 12, 3000, 0x4e00));
    for (int i = 0; i < 1000; ++i) rows.push_back(edited(random, rows[random() % rows.size()], 3, 26));
    BothIndexes both(text_rows(rows));
    std::vector<Text> asked;
    for (int i = 0; i < 300; ++i) asked.push_back(edited(random, rows[random() % rows.size()], random() % 4, 26));
    const OwnedRows queries = text_rows(asked);
    for (const std::uint32_t k : {1, 5, 50}) both.expect_same(batch_of(queries, k));
}

// Many more results of one distance than the device keeps: the first rows are wanted.
TEST(DeviceText, ManyEqualDistancesEqualTheCpus)
{
    std::mt19937 random(3);
    std::vector<Text> rows;
    for (int i = 0; i < 60000; ++i) rows.push_back(random_text(random, 20 + random() % 2, 2));
    for (int i = 0; i < 20000; ++i) rows.push_back(U"one title that many have");
    BothIndexes both(text_rows(rows));
    const OwnedRows queries = text_rows({U"one title that many have", U"one title that several have",
                                         random_text(random, 20, 2), random_text(random, 21, 2), U""});
    for (const std::uint32_t k : {1, 10, 3000}) both.expect_same(batch_of(queries, k));
}

TEST(DeviceText, NoResultIsBeyondTheReach)
{
    RandomTexts texts(5, 30);
    const std::vector<Text> rows = texts.some(3000);
    BothIndexes both(text_rows(rows));
    const std::vector<Text> asked = texts.queries(rows, 200);
    const OwnedRows queries = text_rows(asked);
    for (const double reach : {0.0, 1.0, 2.0, 4.0}) {
        const std::vector<double> reaches(asked.size(), reach);
        SearchBatch batch = batch_of(queries, 3000);
        // A reach of each query, or one of the search.
        if (reach < 2) {
            batch.reach = reaches;
        } else {
            set_within(&batch.settings, reach);
        }
        std::vector<std::vector<RowResult>> found;
        both.device().search(batch, found, both.pool());
        for (std::size_t i = 0; i < asked.size(); ++i) {
            std::size_t wanted = 0;
            for (const Text& row : rows) wanted += plain_distance(asked[i], row) <= reach;
            ASSERT_EQ(found[i].size(), wanted);
            if (wanted > 0) {
                ASSERT_LE(found[i].back().distance, reach);
            }
        }
    }
}

// One round finds near texts, may miss far ones, and is complete within a reach, behind a row and where few texts are
// near.
TEST(DeviceText, OneRoundCompletesBoundsAndPages)
{
    std::mt19937 random(13);
    std::vector<Text> rows;
    while (rows.size() < 40000) rows.push_back(random_text(random, 30 + random() % 30, 12));
    std::vector<Text> asked;
    while (asked.size() < 200) asked.push_back(edited(random, rows[random() % rows.size()], random() % 5, 12));
    BothIndexes both(text_rows(rows));
    const OwnedRows queries = text_rows(asked);
    const auto searched = [&](std::uint32_t k, double within) {
        SearchBatch batch = batch_of(queries, k);
        batch.settings.set(matchcount_one_round, 1);
        set_within(&batch.settings, within);
        std::vector<std::vector<RowResult>> found;
        both.device().search(batch, found, both.pool());
        return found;
    };
    const auto expect_sorted = [](const std::vector<RowResult>& found) {
        EXPECT_TRUE(std::ranges::is_sorted(found, {}, [](const RowResult& r) { return std::pair(r.distance, r.row); }));
    };
    const auto ten = searched(10, no_bound);
    const auto hundred = searched(100, no_bound);
    std::vector<std::vector<RowResult>> nearest;
    both.device().search(batch_of(queries, 10), nearest, both.pool());
    std::size_t farther = 0;
    for (std::size_t q = 0; q < asked.size(); ++q) {
        ASSERT_EQ(hundred[q].size(), 100U);
        expect_sorted(hundred[q]);
        for (const RowResult& result : hundred[q])
            ASSERT_EQ(result.distance, plain_distance(asked[q], rows[result.row]));
        expect_equal(ten[q], {hundred[q].begin(), hundred[q].begin() + 10});
        EXPECT_EQ(ten[q][0].distance, nearest[q][0].distance);
        ASSERT_GE(ten[q][9].distance, nearest[q][9].distance);
        farther += ten[q][9].distance > nearest[q][9].distance;
    }
    EXPECT_GT(farther, 0U);
    const auto within = searched(10, 20);
    for (std::size_t q = 0; q < asked.size(); ++q) {
        std::erase_if(nearest[q], [](const RowResult& result) { return result.distance > 20; });
        ASSERT_NO_FATAL_FAILURE(expect_equal(within[q], nearest[q]));
    }
    SearchBatch batch = batch_of(queries, 10);
    batch.settings.set(matchcount_one_round, 1);
    both.expect_same_continuation(batch, {12, 7});
    batch.count = 1;
    batch.k = static_cast<std::uint32_t>(rows.size());
    both.expect_same(batch);
}

// Of 100 rows 95 are dead: a page of one round is still the beginning of a larger one.
TEST(DeviceText, OneRoundLooksForLiveRows)
{
    std::mt19937 random(17);
    std::vector<Text> rows;
    while (rows.size() < 60000) rows.push_back(random_text(random, 30 + random() % 30, 12));
    std::vector<Text> asked;
    while (asked.size() < 200) asked.push_back(random_text(random, 35 + random() % 20, 12));
    BothIndexes both(text_rows(rows));
    const OwnedRows queries = text_rows(asked);
    std::vector<std::uint64_t> dead = random_dead(rows.size(), 20, random);
    for (std::uint64_t& word : dead) word = ~word;
    const std::uint64_t version = new_bitmap_version();
    std::vector<std::vector<std::vector<RowResult>>> pages;
    for (const std::uint32_t k : {10, 100, 300}) {
        SearchBatch batch = batch_of(queries, k);
        batch.settings.set(matchcount_one_round, 1);
        batch.dead = dead;
        batch.dead_version = version;
        both.device().search(batch, pages.emplace_back(), both.pool());
    }
    for (std::size_t q = 0; q < asked.size(); ++q) {
        SCOPED_TRACE("query " + std::to_string(q));
        for (const RowResult& result : pages[2][q]) ASSERT_FALSE(bit_is_set(dead, result.row));
        for (std::size_t page = 0; page < 2; ++page) {
            const std::size_t size = pages[page][q].size();
            ASSERT_LE(size, pages[2][q].size());
            ASSERT_NO_FATAL_FAILURE(expect_equal(pages[page][q], {pages[2][q].begin(), pages[2][q].begin() + size}));
        }
    }
}

// Cursors between two distances and beyond all of them.
TEST(DeviceText, ContinuationsBehindAnyDistance)
{
    RandomTexts texts(21, 30);
    const std::vector<Text> rows = texts.some(500);
    BothIndexes both(text_rows(rows));
    const OwnedRows queries = text_rows(texts.queries(rows, 1));
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double distance : {from_front, -1.0, -0.0, 0.5, 4.0, 4.5, 2147483647.5, 4294967296.0, 1e300, infinity})
        for (const std::uint32_t row : {0U, 250U, 0xffffffffU})
            ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch_of(queries, 20), {distance, row}))
                << distance << ", " << row;
}

// The longest texts and queries that the device takes, longer ones, and none.
TEST(DeviceText, TextsAndQueriesOfLimitingLengths)
{
    std::mt19937 random(23);
    std::vector<Text> rows = {U"", U"a"};
    for (const std::size_t length : {507, 508, 508, 509, 1999, 2000, 2000, 2001, 65535})
        rows.push_back(random_text(random, length, 3));
    const OwnedRows queries = text_rows(rows);
    const std::vector<Text> longest(rows.end() - 2, rows.end());
    for (const std::vector<Text>& some : std::vector<std::vector<Text>>{rows, longest, {U"", U"a"}, {U""}, {}}) {
        BothIndexes both(text_rows(some));
        for (const std::uint32_t k : {1U, max_k}) ASSERT_NO_FATAL_FAILURE(both.expect_same(batch_of(queries, k)));
    }
}

// Threads with other k, reaches and dead rows each.
TEST(DeviceText, SearchesAtATimeEqualTheCpus)
{
    RandomTexts texts(25, 40);
    const std::vector<Text> rows = texts.some(5000);
    BothIndexes both(text_rows(rows));
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([&both, &rows, number] {
            RandomTexts own(30 + number, 40);
            const OwnedRows queries = text_rows(own.queries(rows, 1 + 40 * number));
            for (unsigned round = 0; round < 8; ++round) {
                const std::vector<std::uint64_t> dead = random_dead(rows.size(), 2 + round, own.random());
                SearchBatch batch = batch_of(queries, 1 + own.random()() % 300);
                if (round % 2 == 0) set_within(&batch.settings, static_cast<double>(own.random()() % 9));
                batch.dead = dead;
                batch.dead_version = round % 4 == 3 ? 0 : new_bitmap_version();
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

// With any budget a search is answered, or fails and leaves no memory taken.
TEST(DeviceText, ShortMemoryIsGivenBack)
{
    RandomTexts texts(27, 40);
    const std::vector<Text> rows = texts.some(20000);
    const OwnedRows queries = text_rows(texts.queries(rows, 300));
    const std::vector<std::uint64_t> dead = random_dead(rows.size(), 3, texts.random());
    const OwnedRows loaded = text_rows(rows);
    int loads = 0;
    int answers = 0;
    for (const std::uint64_t kibibytes : {64, 1000, 1400, 1600, 1800, 2000, 2500, 3000, 4000, 20000}) {
        SCOPED_TRACE(std::to_string(kibibytes) + " KiB");
        cuda::Context context(0, kibibytes << 10);
        try {
            BothIndexes both(loaded, context);
            ++loads;
            for (const std::uint32_t k : {500, 10}) {
                SearchBatch batch = batch_of(queries, k);
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
                batch.dead = dead;
                batch.dead_version = new_bitmap_version();
                ASSERT_NO_FATAL_FAILURE(both.expect_same(batch));
                ASSERT_NO_FATAL_FAILURE(both.expect_same_continuation(batch, {3, 9}));
            }
            ++answers;
        } catch (const std::bad_alloc&) {
        }
        EXPECT_EQ(context.pool().used(), 0U);
    }
    EXPECT_GT(answers, 0);
    EXPECT_LT(loads, 10);
}

// A search that is cancelled while the device works leaves nothing behind: the next one is right.
TEST(DeviceText, SearchesMayBeCancelledAnyTime)
{
    std::mt19937 random(29);
    std::vector<Text> rows;
    while (rows.size() < 50000) rows.push_back(random_text(random, 20 + random() % 30, 8));
    cuda::Context context(0, std::uint64_t{1} << 30);
    BothIndexes both(text_rows(rows), context);
    std::vector<Text> asked;
    while (asked.size() < 9000) asked.push_back(edited(random, rows[random() % rows.size()], random() % 12, 8));
    const OwnedRows many = text_rows(asked);
    both.expect_same_between_cancelled(batch_of(many, 5), 20);
}

// Seconds of work on the device end soon after the search is cancelled.
TEST(DeviceText, CancelledSearchesEndSoon)
{
    std::mt19937 random(31);
    std::vector<Text> rows;
    while (rows.size() < 100000) rows.push_back(random_text(random, 480 + random() % 20, 4));
    const OwnedRows texts = text_rows(rows);
    rows.resize(4096);
    for (Text& text : rows) text = random_text(random, 490, 4);
    const OwnedRows queries = text_rows(rows);
    const std::vector<ArrayShape> arrays = arrays_of(texts);
    const std::unique_ptr<Searcher> searcher = cuda::make_text_searcher(shared_context(), text_shape(), arrays);
    for (const ArrayShape& array : arrays) {
        std::vector<std::byte> bytes(array.bytes());
        read_list_array(texts.view(), array.name, 0, bytes);
        searcher->write(array.name, 0, bytes);
    }
    ThreadPool pool(0);
    searcher->finish_load(pool);
    SearchBatch batch = batch_of(queries, 10);
    CancelToken cancel;
    batch.cancel = &cancel;
    std::chrono::steady_clock::time_point cancelled;
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        cancelled = std::chrono::steady_clock::now();
        cancel.cancel();
    });
    std::vector<std::vector<RowResult>> found;
    EXPECT_THROW(searcher->search(batch, found, pool), Cancelled);
    const auto ended = std::chrono::steady_clock::now();
    other.join();
    EXPECT_LT(std::chrono::duration<double>(ended - cancelled).count(), 0.5);
}

TEST(DeviceText, CancelledSearchesThrow)
{
    RandomTexts texts(1, 20);
    const std::vector<Text> rows = texts.some(100);
    BothIndexes both(text_rows(rows));
    CancelToken cancel;
    cancel.cancel();
    SearchBatch batch = batch_of(text_rows({U"a"}), 1);
    const OwnedRows queries = text_rows({U"a"});
    batch.lists = queries.view();
    batch.cancel = &cancel;
    std::vector<std::vector<RowResult>> found;
    EXPECT_THROW(both.device().search(batch, found, both.pool()), Cancelled);
}

TEST(DeviceText, MemoryIsAccounted)
{
    RandomTexts texts(2, 20);
    const std::uint64_t before = shared_context().pool().used();
    {
        BothIndexes both(text_rows(texts.some(1000)));
        const Residence residence = both.device().residence();
        EXPECT_EQ(residence.gpu, shared_context().device());
        EXPECT_EQ(shared_context().pool().used() - before, residence.device_bytes);
        EXPECT_GT(both.device().memory_bytes(), residence.device_bytes);
    }
    EXPECT_EQ(shared_context().pool().used(), before);
}

}  // namespace
}  // namespace pgwarp::test
