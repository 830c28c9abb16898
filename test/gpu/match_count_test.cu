// Match counts on the device against those of the CPU: lists, the k best by postings, all rows of a count; every width
// of counters, ties, windows, dead rows, ranges.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "cluster_fixture.h"
#include "dead_rows.h"
#include "matchcount/count_score.h"
#include "matchcount/match_count.h"
#include "methods/errors.h"

namespace pgwarp::cuda::matchcount
{
namespace
{

using pgwarp::matchcount::CountedRow;
using HostLists = pgwarp::matchcount::KeywordLists;

// Rows of keywords, and both inverted indexes of them.
struct Index {
    Index(std::vector<std::uint64_t> offsets_in, std::vector<std::uint32_t> keywords_in)
        : offsets(std::move(offsets_in)),
          keywords(std::move(keywords_in)),
          stream(context().lease(Priority::build)),
          host({offsets, keywords}, caller_alone())
    {
        const auto device_offsets = to_device(offsets, stream);
        const auto device_keywords = to_device(keywords, stream);
        device = KeywordLists({rows(), device_offsets.data(), device_keywords.data()}, context().pool(), stream);
    }
    std::uint32_t rows() const { return static_cast<std::uint32_t>(offsets.size() - 1); }

    std::vector<std::uint64_t> offsets;
    std::vector<std::uint32_t> keywords;
    Context::Lease stream;
    HostLists host;
    KeywordLists device;
};

// Rows of up to `longest` keywords below `universe`; keywords may repeat.
Index random_index(std::mt19937& random, std::uint32_t rows, std::uint32_t longest, std::uint64_t universe)
{
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> keywords;
    for (std::uint32_t row = 0; row < rows; ++row) {
        const std::uint32_t length = random() % (longest + 1);
        for (std::uint32_t i = 0; i < length; ++i)
            keywords.push_back(static_cast<std::uint32_t>((std::uint64_t{random()} << 4 ^ random()) % universe));
        offsets.push_back(keywords.size());
    }
    return {std::move(offsets), std::move(keywords)};
}

std::vector<Item> random_items(std::mt19937& random, std::uint32_t count, std::uint64_t universe, std::uint32_t width)
{
    std::vector<Item> items(count);
    for (Item& item : items) {
        item.first = static_cast<std::uint32_t>(random() % (universe + 1));
        const std::uint32_t more = random() % width;
        item.last = random() % 9 == 0 ? item.first - 1 : item.first + std::min(more, UINT32_MAX - item.first);
    }
    return items;
}

// A batch of queries on both sides.
struct Batch {
    std::vector<std::vector<Item>> queries;
    std::vector<RowWindow> windows;    // or empty
    std::vector<std::uint32_t> least;  // or empty
    std::vector<std::uint64_t> dead;   // or empty
};

struct Found {
    std::vector<std::uint32_t> rows;
    std::vector<std::uint32_t> counts;
    std::vector<std::uint32_t> found;
};

Found run(const Index& index, const Batch& batch, std::uint32_t places, bool all)
{
    const cudaStream_t stream = index.stream;
    std::vector<std::uint32_t> offsets{0};
    std::vector<Item> items;
    CountQueries queries;
    queries.count = static_cast<std::uint32_t>(batch.queries.size());
    for (const std::vector<Item>& query : batch.queries) {
        items.insert(items.end(), query.begin(), query.end());
        offsets.push_back(static_cast<std::uint32_t>(items.size()));
        queries.bound = std::max(queries.bound, count_bound(index.device, query));
    }
    const auto device_offsets = to_device(offsets, stream);
    const auto device_items = to_device(items, stream);
    const auto windows = to_device(batch.windows, stream);
    const auto least = to_device(batch.least, stream);
    const auto dead = to_device(batch.dead, stream);
    queries.item_offsets = device_offsets.data();
    queries.items = device_items.data();
    queries.windows = windows.data();
    queries.least = least.data();
    queries.dead = reinterpret_cast<const std::uint32_t*>(dead.data());
    const std::size_t results = std::size_t{queries.count} * places;
    auto rows = to_device(std::vector<std::uint32_t>(results, 0xabababab), stream);
    auto counts = to_device(std::vector<std::uint32_t>(results, 0xabababab), stream);
    auto found = to_device(std::vector<std::uint32_t>(queries.count, 0xabababab), stream);
    const KeywordListsView view = index.device.view();
    if (all) {
        rows_of_counts(view, queries, places, {rows.data(), counts.data(), found.data()}, context(), stream);
    } else {
        DeviceArray<std::byte> workspace(context().pool(), top_counts_workspace_bytes(view, queries, places, context()),
                                         "test", stream);
        if (workspace.bytes() > 0) check(cudaMemsetAsync(workspace.data(), 0xa5, workspace.bytes(), stream), "poison");
        top_counts(view, queries, places, {rows.data(), counts.data(), found.data()}, workspace.data(), context(),
                   stream);
        check(cudaStreamSynchronize(stream), "counting");
    }
    return {to_host(rows, stream), to_host(counts, stream), to_host(found, stream)};
}

// The rows that a query may have, by the counts of the CPU, best first.
std::vector<CountedRow> expected_rows(const Index& index, const Batch& batch, std::size_t query, std::uint32_t k,
                                      std::uint32_t otherwise_least)
{
    pgwarp::matchcount::CountWorkspace workspace;
    const bool cut = !batch.windows.empty() || !batch.least.empty();
    const std::uint32_t wanted = cut ? index.rows() + 1 : k;
    std::vector<CountedRow> rows = search_counts(index.host, batch.queries[query], wanted, batch.dead, workspace).rows;
    const std::uint32_t least = batch.least.empty() ? otherwise_least : batch.least[query];
    std::erase_if(rows, [&](const CountedRow& row) {
        if (row.count < least) return true;
        return !batch.windows.empty() && (row.row < batch.windows[query].first || row.row >= batch.windows[query].last);
    });
    rows.resize(std::min<std::size_t>(rows.size(), k));
    return rows;
}

void expect_top(const Index& index, const Batch& batch, std::uint32_t k)
{
    const Found found = run(index, batch, k, false);
    for (std::size_t query = 0; query < batch.queries.size(); ++query) {
        const std::vector<CountedRow> expected = expected_rows(index, batch, query, k, 0);
        ASSERT_EQ(found.found[query], expected.size()) << "query " << query << " k " << k;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_EQ(found.rows[query * k + i], expected[i].row) << "query " << query << " place " << i << " k " << k;
            ASSERT_EQ(found.counts[query * k + i], expected[i].count) << "query " << query << " place " << i;
        }
    }
}

void expect_all(const Index& index, const Batch& batch, std::uint32_t capacity)
{
    const Found found = run(index, batch, capacity, true);
    for (std::size_t query = 0; query < batch.queries.size(); ++query) {
        std::vector<CountedRow> expected = expected_rows(index, batch, query, index.rows(), 1);
        ASSERT_EQ(found.found[query], expected.size()) << "query " << query;
        if (expected.size() > capacity) continue;
        std::sort(expected.begin(), expected.end(),
                  [](const CountedRow& a, const CountedRow& b) { return a.row < b.row; });
        std::vector<std::pair<std::uint32_t, std::uint32_t>> rows;
        for (std::size_t i = 0; i < expected.size(); ++i)
            rows.emplace_back(found.rows[query * capacity + i], found.counts[query * capacity + i]);
        std::sort(rows.begin(), rows.end());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_EQ(rows[i].first, expected[i].row) << "query " << query;
            ASSERT_EQ(rows[i].second, expected[i].count) << "query " << query;
        }
    }
}

class MatchCountTest : public testing::Test
{
protected:
    std::mt19937 random_{29};
};

TEST_F(MatchCountTest, ScoresKeepTheOrderOfCounts)
{
    float before = INFINITY;
    for (const std::uint32_t count : {0U, 1U, 2U, 255U, 65535U, (1U << 24) + 1, 0x7f7ffffeU, 0x7f7fffffU, 0x7f800000U,
                                      0x7f800001U, 0x7ffffffeU, 0x7fffffffU}) {
        const float score = score_of_count(count);
        EXPECT_LT(score, before);
        EXPECT_TRUE(std::isfinite(score));
        EXPECT_FALSE(score == 0 && std::signbit(score));
        EXPECT_EQ(count_of_score(score), count);
        before = score;
    }
}

// The list of a keyword in all ranges, put together and in row order.
std::vector<std::uint32_t> list_of(const Index& index, const std::vector<std::uint16_t>& list_array,
                                   const std::vector<std::uint32_t>& keywords,
                                   const std::vector<std::uint32_t>& positions,
                                   const std::vector<std::uint64_t>& range_starts,
                                   const std::vector<std::uint64_t>& list_starts, std::uint32_t keyword)
{
    const KeywordListsView view = index.device.view();
    std::vector<std::uint32_t> rows;
    for (std::uint32_t range = 0; range < view.ranges; ++range) {
        std::size_t at = 0;
        if (view.universe != 0) {
            if (keyword >= view.universe) continue;
            at = range * (std::size_t{view.universe} + 1) + keyword;
        } else {
            const auto begin = keywords.begin() + static_cast<std::ptrdiff_t>(list_starts[range]);
            const auto end = keywords.begin() + static_cast<std::ptrdiff_t>(list_starts[range + 1]);
            const auto found = std::lower_bound(begin, end, keyword);
            if (found == end || *found != keyword) continue;
            at = static_cast<std::size_t>(found - keywords.begin()) + range;
        }
        const std::size_t before = rows.size();
        for (std::uint32_t i = positions[at]; i < positions[at + 1]; ++i)
            rows.push_back(range * range_rows + list_array[range_starts[range] + i]);
        std::sort(rows.begin() + static_cast<std::ptrdiff_t>(before), rows.end());
    }
    return rows;
}

template <class T>
std::vector<T> read(const T* from, std::size_t count)
{
    std::vector<T> values(count);
    if (count > 0) check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "reading");
    return values;
}

TEST_F(MatchCountTest, ListsAreThoseOfTheCpu)
{
    struct Shape {
        std::uint32_t rows, longest;
        std::uint64_t universe;
        bool dense;
    };
    for (const Shape& shape : {Shape{1, 5, 3, false}, Shape{1000, 20, 50, true}, Shape{1000, 3, 1ULL << 32, false},
                               Shape{70000, 6, 300, true}, Shape{140000, 4, 1ULL << 20, false}}) {
        const Index index = random_index(random_, shape.rows, shape.longest, shape.universe);
        const KeywordListsView view = index.device.view();
        ASSERT_EQ(index.device.postings(), index.host.postings());
        ASSERT_EQ(index.device.longest_row(), index.host.longest_row());
        ASSERT_EQ(index.device.most_repeats(), index.host.most_repeats());
        ASSERT_EQ(view.universe != 0, shape.dense);
        ASSERT_GT(index.device.memory_bytes(), 2 * index.device.postings());
        const auto range_starts = read(view.range_starts, view.ranges + 1);
        const auto list_starts = read(view.list_starts, view.universe != 0 ? 0 : view.ranges + 1);
        const auto keywords = read(view.keywords, list_starts.empty() ? 0 : list_starts.back());
        const auto positions = read(
            view.positions, view.universe != 0 ? view.ranges * (view.universe + 1ULL) : keywords.size() + view.ranges);
        const auto list_array = read(view.list_array, index.device.postings());
        std::vector<std::uint32_t> asked = index.keywords;
        std::shuffle(asked.begin(), asked.end(), random_);
        asked.resize(std::min<std::size_t>(asked.size(), 300));
        asked.insert(asked.end(), {0, 1, 299, 300, 301, UINT32_MAX});
        for (const std::uint32_t keyword : asked) {
            const auto host = index.host.list(keyword);
            ASSERT_EQ(list_of(index, list_array, keywords, positions, range_starts, list_starts, keyword),
                      std::vector<std::uint32_t>(host.begin(), host.end()))
                << keyword;
        }
    }
}

TEST_F(MatchCountTest, NoRowsAndNoKeywords)
{
    const Index nothing({0}, {});
    const Index empty_rows(std::vector<std::uint64_t>(70001, 0), {});
    for (const Index* index : {&nothing, &empty_rows}) {
        EXPECT_EQ(index->device.postings(), 0U);
        Batch batch;
        batch.queries = {{}, {{0, 5}}, {{0, UINT32_MAX}, {7, 3}}};
        expect_top(*index, batch, 10);
        expect_all(*index, batch, 10);
    }
}

TEST_F(MatchCountTest, SmallCasesOfEveryKind)
{
    for (int round = 0; round < 400; ++round) {
        const std::uint64_t universe = round % 3 == 0 ? 1ULL << 32 : 1 + random_() % 200;
        const std::uint32_t rows = 1 + random_() % (round % 5 == 0 ? 3000 : 60);
        const Index index = random_index(random_, rows, 1 + random_() % 30, universe);
        Batch batch;
        const std::size_t queries = 1 + random_() % 20;
        for (std::size_t i = 0; i < queries; ++i) {
            std::vector<Item> items =
                random_items(random_, random_() % 40, universe, universe > 1000 ? UINT32_MAX : 1 + random_() % 50);
            for (std::size_t j = 0; j < items.size() && !index.keywords.empty(); j += 2)
                items[j].first = items[j].last = index.keywords[random_() % index.keywords.size()];
            batch.queries.push_back(std::move(items));
            if (round % 4 == 1)
                batch.windows.push_back({static_cast<std::uint32_t>(random_() % (rows + 1)),
                                         static_cast<std::uint32_t>(random_() % (rows + 9))});
            if (round % 7 == 2) batch.least.push_back(1 + random_() % 5);
        }
        if (round % 2 == 1) batch.dead = random_dead(random_, rows, 1 + random_() % 4);
        ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 1 + random_() % (round % 9 == 0 ? rows + 5 : 20))) << round;
        ASSERT_NO_FATAL_FAILURE(expect_all(index, batch, 1 + random_() % (2 * rows))) << round;
    }
}

// The rows that a query may have, by definition 3.1.
std::vector<CountedRow> defined_rows(const Index& index, const std::vector<Item>& items,
                                     const std::vector<std::uint64_t>& dead, std::uint32_t k)
{
    std::vector<CountedRow> rows;
    for (std::uint32_t row = 0; row < index.rows(); ++row) {
        if (!dead.empty() && (dead[row / 64] >> row % 64 & 1) != 0) continue;
        std::uint32_t count = 0;
        for (const Item& item : items)
            for (std::uint64_t i = index.offsets[row]; i < index.offsets[row + 1]; ++i)
                count += item.first <= index.keywords[i] && index.keywords[i] <= item.last;
        rows.push_back({row, count});
    }
    std::ranges::stable_sort(rows, std::greater(), &CountedRow::count);
    rows.resize(std::min<std::size_t>(rows.size(), k));
    return rows;
}

TEST_F(MatchCountTest, AMillionSmallCasesAreAsDefined)
{
    std::size_t cases = 0;
    for (int round = 0; round < 500; ++round) {
        const std::uint64_t universe = round % 3 == 0 ? 1ULL << 32 : 1 + random_() % 12;
        const Index index = random_index(random_, 1 + random_() % 20, 7, universe);
        Batch batch;
        if (round % 2 == 0) batch.dead = random_dead(random_, index.rows(), 4);
        while (batch.queries.size() < 2000) {
            std::vector<Item> items =
                random_items(random_, random_() % 8, universe, universe > 12 ? UINT32_MAX : 1 + random_() % 6);
            for (std::size_t i = 0; i < items.size() && !index.keywords.empty(); i += 2)
                items[i].first = items[i].last = index.keywords[random_() % index.keywords.size()];
            batch.queries.push_back(std::move(items));
        }
        const std::uint32_t k = 1 + random_() % 24;
        const Found found = run(index, batch, k, false);
        for (std::size_t query = 0; query < batch.queries.size(); ++query, ++cases) {
            const std::vector<CountedRow> defined = defined_rows(index, batch.queries[query], batch.dead, k);
            ASSERT_EQ(found.found[query], defined.size()) << "round " << round << " query " << query;
            for (std::size_t i = 0; i < defined.size(); ++i) {
                ASSERT_EQ(found.rows[query * k + i], defined[i].row) << "round " << round << " query " << query;
                ASSERT_EQ(found.counts[query * k + i], defined[i].count) << "round " << round << " query " << query;
            }
        }
    }
    EXPECT_EQ(cases, 1000000U);
}

// Rows of several ranges, whose counts take 8, 16 or 32 bits, with the shared memory of large and small devices.
TEST_F(MatchCountTest, WidthsOfCountersAndSmallDevices)
{
    const std::uint32_t rows = 3 * range_rows / 2 + 777;
    const Index index = random_index(random_, rows, 6, 90);
    for (const std::size_t shared : {SIZE_MAX, std::size_t{65536}}) {
        context().limit_shared_bytes(shared);
        for (const std::uint32_t repeats : {1U, 60U, 40000U}) {
            Batch batch;
            for (std::uint32_t i = 0; i < 4; ++i) {
                std::vector<Item> items = random_items(random_, 6, 90, 30);
                items.push_back({i, 60});
                if (repeats > 1000) items = {{i, i}};
                batch.queries.emplace_back();
                for (std::uint32_t j = 0; j < repeats; ++j)
                    batch.queries.back().insert(batch.queries.back().end(), items.begin(), items.end());
            }
            batch.dead = random_dead(random_, rows, 7);
            const std::uint32_t bound = count_bound(index.device, batch.queries[0]);
            ASSERT_EQ(bound < 256, repeats == 1);
            ASSERT_EQ(bound >= 65536, repeats > 1000);
            ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 100));
            if (repeats == 1) ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 2000));
            batch.windows = {{0, rows}, {65000, 66000}, {90000, rows + 5}, {70000, 60000}};
            batch.least = {repeats * 4, repeats, 3, 2};
            ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 50));
            if (repeats == 60) ASSERT_NO_FATAL_FAILURE(expect_all(index, batch, 20000));
        }
    }
    context().limit_shared_bytes(SIZE_MAX);
}

// Enough queries for parts of whole ranges.
TEST_F(MatchCountTest, ManyQueries)
{
    const std::uint32_t rows = 3 * range_rows / 2 + 777;
    const Index index = random_index(random_, rows, 6, 90);
    for (const std::uint32_t repeats : {1U, 60U}) {
        Batch batch;
        const auto queries = static_cast<std::uint32_t>(context().multiprocessors()) * 3 / 2;
        for (std::uint32_t i = 0; i < queries; ++i) {
            // Repeated wide items would take the CPU long.
            const std::vector<Item> items = random_items(random_, 6, 90, repeats == 1 ? 30 : 3);
            batch.queries.emplace_back();
            for (std::uint32_t j = 0; j < repeats; ++j)
                batch.queries.back().insert(batch.queries.back().end(), items.begin(), items.end());
        }
        ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 300));
        batch.dead = random_dead(random_, rows, 7);
        ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 100));
        for (std::uint32_t i = 0; i < queries; ++i) {
            batch.windows.push_back({i * 300, i * 300 + 40000});
            batch.least.push_back(repeats * (1 + i % 6));
        }
        ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 50));
        ASSERT_NO_FATAL_FAILURE(expect_all(index, batch, 20000));
    }
}

// All rows have the same count: the first are the best.
TEST_F(MatchCountTest, TiesGoToTheFirstRows)
{
    const std::uint32_t rows = 2 * range_rows + 100;
    std::vector<std::uint64_t> offsets(rows + 1);
    for (std::uint32_t row = 0; row <= rows; ++row) offsets[row] = row;
    const Index index(std::move(offsets), std::vector<std::uint32_t>(rows, 5));
    Batch batch;
    batch.queries = {{{5, 5}}, {{5, 5}, {0, 9}}, {{6, 6}}};
    for (const std::uint32_t k : {1U, 100U, 3000U}) ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, k));
    batch.dead = random_dead(random_, rows, 2);
    ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, 500));
    ASSERT_NO_FATAL_FAILURE(expect_top(index, batch, rows));
    ASSERT_NO_FATAL_FAILURE(expect_all(index, batch, rows));
}

TEST_F(MatchCountTest, BoundsHold)
{
    const Index index = random_index(random_, 500, 30, 40);
    for (int round = 0; round < 50; ++round) {
        const std::vector<Item> items = random_items(random_, random_() % 60, 40, 20);
        pgwarp::matchcount::CountWorkspace workspace;
        const auto best = search_counts(index.host, items, 1, {}, workspace).rows;
        ASSERT_GE(count_bound(index.device, items), best[0].count);
    }
    const Index long_row({0, 100000}, std::vector<std::uint32_t>(100000, 7));
    EXPECT_EQ(count_bound(long_row.device, std::vector<Item>(20000, Item{7, 7})), 2000000000U);
    EXPECT_THROW(count_bound(long_row.device, std::vector<Item>(30000, Item{7, 7})), BadRequest);
}

}  // namespace
}  // namespace pgwarp::cuda::matchcount
