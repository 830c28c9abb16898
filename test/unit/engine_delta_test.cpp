// Fresh rows in parts: searches answer as if all rows were compared, or as an index built of them would.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "engine/delta_search.h"
#include "engine/error.h"
#include "engine/search.h"
#include "engine_fixture.h"
#include "index/arrays.h"
#include "index_fixture.h"

namespace pgwarp
{
namespace
{

using test::make_list;
using test::random_rows;

constexpr std::size_t dimensions = 24;

Tid tid_of(std::size_t row)
{
    return {static_cast<std::uint32_t>(row / 8), static_cast<std::uint16_t>(row % 8 + 1), 0};
}
std::size_t row_of(const Tid& tid)
{
    return std::size_t{tid.block} * 8 + tid.offset - 1;
}

// An index of the first rows, the others its delta: rows, from the index on, go to the logs in turns of 50.
class Fresh
{
public:
    Fresh(Method method, Metric metric, std::size_t rows, std::size_t fresh, const ParameterList& options = {})
        : metric_(metric), indexed_(rows), vectors_(random_rows(rows + fresh, dimensions, 7))
    {
        if (metric == Metric::cosine) test::normalise_rows(vectors_, dimensions);
        index_ = std::make_unique<test::Index>(
            method, metric, dimensions,
            std::vector<float>(vectors_.begin(), vectors_.begin() + static_cast<std::ptrdiff_t>(rows * dimensions)),
            options, pool);
        mirror = load();
    }

    std::shared_ptr<Mirror> load()
    {
        std::vector<ArrayShape> arrays = index_->builder->arrays();
        std::vector<std::uint32_t> blocks;
        std::vector<std::uint16_t> offsets;
        for (std::size_t row = 0; row < indexed_; ++row) {
            blocks.push_back(tid_of(row).block);
            offsets.push_back(tid_of(row).offset);
        }
        arrays.push_back(make_array_shape(array_tid_block, ArrayType::u32, indexed_, 1));
        arrays.push_back(make_array_shape(array_tid_offset, ArrayType::u16, indexed_, 1));
        auto loaded = std::make_shared<Mirror>(MirrorKey{}, index_->shape, index_->builder->effective_options(),
                                               indexed_, arrays, *find_method(index_->shape.method), false);
        const auto methods = static_cast<std::uint32_t>(arrays.size() - 2);
        for (std::uint32_t i = 0; i < methods; ++i) loaded->write(i, 0, index_->contents(arrays[i]));
        loaded->write(methods, 0, std::as_bytes(std::span(blocks)));
        loaded->write(methods + 1, 0, std::as_bytes(std::span(offsets)));
        loaded->finish_load(pool);
        return loaded;
    }

    // Rows [begin, end) of all.
    void append(Mirror& to, std::size_t begin, std::size_t end)
    {
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint32_t log = log_of(row);
            const std::uint64_t position =
                to.snapshot()->logs[log].known ? to.snapshot()->logs[log].end : first_position;
            const Tid tid = tid_of(row);
            to.add_delta(log, position, {&tid, 1}, {row_at(row), dimensions});
        }
    }
    // All fresh rows, so many steps, a part after each but the last `plain` ones.
    void append_in_parts(Mirror& to, std::size_t steps, std::size_t plain = 0)
    {
        const std::size_t fresh = rows() - indexed_;
        for (std::size_t step = 0; step < steps; ++step) {
            append(to, indexed_ + fresh * step / steps, indexed_ + fresh * (step + 1) / steps);
            if (step + plain < steps) to.add_part(pool, [](std::uint64_t) {});
        }
    }
    // Marks rows dead, wherever they are.
    void kill(Mirror& in, const std::set<std::size_t>& dead, std::uint64_t version)
    {
        Tombstones stones;
        std::array<std::uint64_t, delta_log_count> next;
        next.fill(first_position);
        stones.rows.resize((indexed_ + 63) / 64);
        for (std::size_t row = 0; row < rows(); ++row) {
            const std::uint64_t position = row < indexed_ ? 0 : next[log_of(row)]++;
            if (!dead.contains(row)) continue;
            if (row < indexed_) {
                stones.rows[row / 64] |= std::uint64_t{1} << (row % 64);
            } else {
                stones.log_entries[log_of(row)].push_back(position);
            }
        }
        in.add_tombstones(version, stones);
    }

    SearchAnswer search(const std::shared_ptr<Mirror>& in, const std::vector<float>& queries, std::uint32_t k,
                        std::int64_t effort = 0, SearchMode mode = SearchMode::normal, SearchCursor after = {})
    {
        SearchSettings settings;
        settings.mirror = in;
        settings.k = k;
        settings.effort = effort;
        settings.mode = mode;
        settings.after = after;
        settings.want_places = true;
        SearchAnswer answer;
        run_search(settings, queries, queries.size() / dimensions, nullptr, pool, answer);
        return answer;
    }

    std::vector<std::size_t> truth(const float* query, std::size_t k, const std::set<std::size_t>& dead = {}) const
    {
        std::vector<std::pair<double, std::size_t>> all;
        for (std::size_t row = 0; row < rows(); ++row) {
            if (!dead.contains(row)) all.emplace_back(canonical_distance(metric_, query, row_at(row), dimensions), row);
        }
        std::sort(all.begin(), all.end());
        all.resize(std::min(k, all.size()));
        std::vector<std::size_t> nearest;
        for (const auto& [distance, row] : all) nearest.push_back(row);
        return nearest;
    }
    // The share of the true neighbours found; none that is dead, none twice.
    double recall(const SearchAnswer& answer, const std::vector<float>& queries, std::uint32_t k,
                  const std::set<std::size_t>& dead = {}) const
    {
        std::size_t at = 0;
        double found = 0;
        for (std::size_t q = 0; q < answer.counts.size(); ++q) {
            EXPECT_EQ(answer.counts[q], k);
            std::set<std::size_t> seen;
            for (const std::size_t end = at + answer.counts[q]; at < end; ++at) {
                const std::size_t row = row_of(answer.results[at].tid);
                EXPECT_FALSE(dead.contains(row));
                EXPECT_TRUE(seen.insert(row).second);
            }
            for (const std::size_t row : truth(queries.data() + q * dimensions, k, dead))
                found += seen.contains(row) ? 1 : 0;
        }
        return found / static_cast<double>(answer.counts.size() * k);
    }

    std::vector<float> queries(std::size_t count) const
    {
        std::vector<float> rows = random_rows(rows_of_cluster + count, dimensions, 7);
        rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(rows_of_cluster * dimensions));
        if (metric_ == Metric::cosine) test::normalise_rows(rows, dimensions);
        return rows;
    }

    std::size_t rows() const { return vectors_.size() / dimensions; }
    const float* row_at(std::size_t row) const { return vectors_.data() + row * dimensions; }
    const std::vector<float>& vectors() const { return vectors_; }
    std::size_t indexed() const { return indexed_; }
    const test::Index& index() const { return *index_; }

    ThreadPool pool{2};
    std::shared_ptr<Mirror> mirror;

private:
    static constexpr std::uint64_t first_position = 1000;  // of every log
    static constexpr std::size_t rows_of_cluster = 20000;  // of the same clusters as the rows, but others
    std::uint32_t log_of(std::size_t row) const
    {
        return static_cast<std::uint32_t>((row - indexed_) / 50 % delta_log_count);
    }

    Metric metric_;
    std::size_t indexed_;
    std::vector<float> vectors_;
    std::unique_ptr<test::Index> index_;
};

std::set<std::size_t> every(std::size_t step, std::size_t rows)
{
    std::set<std::size_t> chosen;
    for (std::size_t row = 0; row < rows; row += step) chosen.insert(row);
    return chosen;
}

void expect_same(const SearchAnswer& a, const SearchAnswer& b)
{
    ASSERT_EQ(a.counts, b.counts);
    ASSERT_EQ(a.places, b.places);
    for (std::size_t i = 0; i < a.results.size(); ++i) {
        EXPECT_EQ(a.results[i].tid, b.results[i].tid);
        EXPECT_EQ(a.results[i].distance, b.results[i].distance);
    }
}

class ExactParts : public testing::TestWithParam<Metric>
{
};

TEST_P(ExactParts, AnswerAsComparingEveryRowDoes)
{
    Fresh fresh(Method::exact, GetParam(), 1500, 1300);
    const auto plain = fresh.load();
    fresh.append(*plain, fresh.indexed(), fresh.rows());
    fresh.append_in_parts(*fresh.mirror, 11, 1);
    ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 2U);
    EXPECT_GT(fresh.mirror->snapshot()->plain_rows(), 0U);
    EXPECT_EQ(fresh.mirror->snapshot()->delta_rows(), 1300U);
    const std::vector<float> queries = fresh.queries(20);
    for (const std::uint32_t k : {1U, 10U, 500U}) {
        expect_same(fresh.search(fresh.mirror, queries, k), fresh.search(plain, queries, k));
        EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, k), queries, k), 1);
    }
    const std::set<std::size_t> dead = every(3, fresh.rows());
    fresh.kill(*plain, dead, 1);
    fresh.kill(*fresh.mirror, dead, 1);
    expect_same(fresh.search(fresh.mirror, queries, 10), fresh.search(plain, queries, 10));
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10, dead), 1);
    // Parts that are made of dead rows.
    fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
    EXPECT_EQ(fresh.mirror->snapshot()->plain_rows(), 0U);
    expect_same(fresh.search(fresh.mirror, queries, 40), fresh.search(plain, queries, 40));
}

INSTANTIATE_TEST_SUITE_P(Metrics, ExactParts,
                         testing::Values(Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1));

struct Kind {
    Metric metric;
    std::int64_t codes;
    std::int64_t refine;
};

class IvfadcParts : public testing::TestWithParam<Kind>
{
protected:
    static constexpr std::int64_t probes = 6;
    ParameterList options() const
    {
        return make_list({{"lists", 48}, {"codes", GetParam().codes}, {"refine", GetParam().refine}});
    }
};

TEST_P(IvfadcParts, FindAsMuchAsAnIndexOfAllRows)
{
    Fresh fresh(Method::ivfadc, GetParam().metric, 4000, 3000, options());
    fresh.append_in_parts(*fresh.mirror, 11, 1);
    ASSERT_GE(fresh.mirror->snapshot()->parts.size(), 2U);
    const std::vector<float> queries = fresh.queries(200);
    Fresh built(Method::ivfadc, GetParam().metric, 7000, 0, options());
    const double fresh_recall = fresh.recall(fresh.search(fresh.mirror, queries, 10, probes), queries, 10);
    const double built_recall = built.recall(built.search(built.mirror, queries, 10, probes), queries, 10);
    EXPECT_GE(fresh_recall, built_recall - 0.01);

    const std::set<std::size_t> dead = every(2, fresh.rows());
    fresh.kill(*fresh.mirror, dead, 1);
    built.kill(*built.mirror, dead, 1);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10, probes), queries, 10, dead),
              built.recall(built.search(built.mirror, queries, 10, probes), queries, 10, dead) - 0.01);
}

TEST_P(IvfadcParts, RankByTheVectorsThemselves)
{
    Fresh fresh(Method::ivfadc, GetParam().metric, 1000, 2000, options());
    fresh.append_in_parts(*fresh.mirror, 3);
    const std::vector<float> queries = fresh.queries(50);
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 10, probes);
    const auto plain = fresh.load();
    fresh.append(*plain, fresh.indexed(), fresh.rows());
    const SearchAnswer compared = fresh.search(plain, queries, 10, probes);
    std::size_t same = 0;
    std::size_t of_delta = 0;
    for (std::size_t i = 0; i < answer.results.size(); ++i) {
        same += answer.results[i].tid == compared.results[i].tid ? 1 : 0;
        if (answer.places[i] < delta_ordinal(0, 0)) continue;
        ++of_delta;
        const float* row = fresh.row_at(row_of(answer.results[i].tid));
        const double distance =
            canonical_distance(GetParam().metric, queries.data() + i / 10 * dimensions, row, dimensions);
        EXPECT_NEAR(answer.results[i].distance, distance, answer.bound_width);
        EXPECT_LE(answer.results[i].distance, distance);
    }
    EXPECT_GT(of_delta, answer.results.size() / 3);
    EXPECT_GT(same, answer.results.size() * 8 / 10);
}

TEST_P(IvfadcParts, RunOutOfNoRows)
{
    Fresh fresh(Method::ivfadc, GetParam().metric, 300, 400, options());
    fresh.append_in_parts(*fresh.mirror, 2);
    const std::vector<float> queries = fresh.queries(3);
    const SearchAnswer answer = fresh.search(fresh.mirror, queries, 700, 1);
    EXPECT_EQ(fresh.recall(answer, queries, 700), 1) << "also those in lists that are not probed";
    // Few of the index live: its own search goes through all lists, and so does that of the parts.
    const std::set<std::size_t> all = every(1, 300);
    fresh.kill(*fresh.mirror, all, 1);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 400, 1), queries, 400, all), 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, IvfadcParts,
                         testing::Values(Kind{Metric::l2, 0, 1}, Kind{Metric::l2, 0, 0}, Kind{Metric::l2, 1, 1},
                                         Kind{Metric::l2, 2, 0}, Kind{Metric::l2, 0, 2}, Kind{Metric::cosine, 0, 1},
                                         Kind{Metric::cosine, 2, 2}, Kind{Metric::inner_product, 0, 1}));

// Lower bounds of half vectors lie below distances: rows with larger values would push nearer fresh ones out.
TEST(DeltaRows, ComeInTimeBesideLowerBounds)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 4000, 3000, make_list({{"lists", 48}}));
    fresh.append(*fresh.mirror, fresh.indexed(), fresh.rows());
    const std::vector<float> queries = fresh.queries(200);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 0.999);
}

TEST(DeltaParts, KeepTheListsThatRowsHave)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 2000, 1500, make_list({{"lists", 40}}));
    fresh.append_in_parts(*fresh.mirror, 5);
    // So many rows that all parts go into one.
    const auto before = fresh.mirror->snapshot();
    ASSERT_GE(before->parts.size(), 2U);
    const auto whole = fresh.load();
    fresh.append_in_parts(*whole, 1);
    ASSERT_EQ(whole->snapshot()->parts.size(), 1U);
    std::map<std::uint64_t, std::uint32_t> list_of;
    const DeltaPart& one = *whole->snapshot()->parts.front().part;
    for (std::size_t i = 0; i < one.rows.size(); ++i) list_of[one.rows[i].ordinal] = one.lists[i];
    std::size_t compared = 0;
    for (const PartView& view : before->parts) {
        ASSERT_EQ(view.part->lists.size(), view.part->rows.size());
        for (std::size_t i = 0; i < view.part->rows.size(); ++i, ++compared) {
            EXPECT_EQ(view.part->lists[i], list_of.at(view.part->rows[i].ordinal));
        }
    }
    EXPECT_EQ(compared, 1500U);
}

TEST(DeltaParts, AreFewHoweverManyTheRows)
{
    Fresh fresh(Method::exact, Metric::l2, 10, 4000);
    std::size_t most = 0;
    for (std::size_t row = 10; row < fresh.rows(); row += 50) {
        fresh.append(*fresh.mirror, row, std::min(row + 50, fresh.rows()));
        fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
        most = std::max(most, fresh.mirror->snapshot()->parts.size());
    }
    EXPECT_LE(most, 4U);
    EXPECT_EQ(fresh.mirror->snapshot()->plain_rows(), 0U);
}

TEST(DeltaParts, ServeAnIndexBuiltWithoutRows)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 0, 900);
    fresh.append_in_parts(*fresh.mirror, 3);
    const std::vector<float> queries = fresh.queries(10);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 1);
}

TEST(DeltaParts, AContinuationOffersEveryRowOnce)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 500, 400, make_list({{"lists", 20}}));
    fresh.append_in_parts(*fresh.mirror, 3, 1);
    const std::vector<float> queries = fresh.queries(1);
    SearchCursor after{-HUGE_VAL, 0};
    std::set<std::size_t> seen;
    while (true) {
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 64, 2, SearchMode::continuation, after);
        if (answer.results.empty()) break;
        for (const Result& result : answer.results) EXPECT_TRUE(seen.insert(row_of(result.tid)).second);
        after = answer.last;
    }
    EXPECT_EQ(seen.size(), 900U);
}

TEST(DeltaParts, AFailureChangesNothing)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    fresh.mirror->count_delta(1, 100000000);
    ASSERT_TRUE(fresh.mirror->wants_part());
    EXPECT_FALSE(fresh.mirror->wants_part()) << "it is being made";
    EXPECT_THROW(fresh.mirror->add_part(fresh.pool, [](std::uint64_t) { throw OutOfMemory("none"); }), OutOfMemory);
    EXPECT_TRUE(fresh.mirror->snapshot()->parts.empty());
    EXPECT_FALSE(fresh.mirror->wants_part()) << "not at once again";
    const std::vector<float> queries = fresh.queries(5);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10), 1);
}

TEST(DeltaParts, AreMadeWhereTheyPay)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 400);
    fresh.append(*fresh.mirror, 500, 900);
    EXPECT_FALSE(fresh.mirror->wants_part()) << "nothing was measured";
    fresh.mirror->count_delta(100000000, 20000000);
    EXPECT_FALSE(fresh.mirror->wants_part()) << "a fifth of the search";
    fresh.mirror->count_delta(0, 10000000);
    EXPECT_TRUE(fresh.mirror->wants_part());
}

TEST(DeltaParts, BearWritersAndReaders)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 1000, 1200, make_list({{"lists", 30}}));
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (std::size_t row = 1000; row < fresh.rows(); row += 10) fresh.append(*fresh.mirror, row, row + 10);
        done = true;
    });
    std::thread indexer([&] {
        ThreadPool own(1);
        while (!done) fresh.mirror->add_part(own, [](std::uint64_t) {});
    });
    std::thread killer([&] {
        for (std::uint64_t version = 1; !done; ++version) fresh.kill(*fresh.mirror, {7, 77}, version);
    });
    const std::vector<float> queries = fresh.queries(8);
    while (!done) {
        const SearchAnswer answer = fresh.search(fresh.mirror, queries, 10, 4);
        EXPECT_EQ(answer.results.size(), 80U);
        EXPECT_LE(answer.snapshot->plain_rows(), answer.snapshot->delta_rows());
    }
    writer.join();
    indexer.join();
    killer.join();
    EXPECT_EQ(fresh.mirror->snapshot()->delta_rows(), 1200U);
    EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10), queries, 10, {7, 77}), 0.99);
}

TEST(DeltaParts, AnEngineMakesThemInTheBackground)
{
    TestServer server;
    const TestIndex index = TestIndex::random(200, 16, Metric::l2, Method::exact);
    EngineClient client(server.path());
    load(client, index, build(client, index));
    TestIndex all = index;
    const std::vector<float> more = index.random_rows(4000, 9);
    std::vector<Tid> tids;
    for (std::size_t i = 0; i < 4000; ++i) tids.push_back({static_cast<std::uint32_t>(5000 + i), 1, 0});
    send_delta(client, index, 1, 0, tids, more);
    all.vectors.insert(all.vectors.end(), more.begin(), more.end());
    all.tids.insert(all.tids.end(), tids.begin(), tids.end());
    SearchRequest request = search_request(index, 10);
    request.delta_end[1] = 4000;
    const auto mirror = server.engine().residency.find_resident(index.key);
    ASSERT_NE(mirror, nullptr);
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    for (std::uint32_t seed = 100; mirror->snapshot()->parts.empty() && Clock::now() < deadline; ++seed) {
        EXPECT_EQ(search(client, request, index.random_rows(1, seed)).results.size(), 10U);
    }
    ASSERT_FALSE(mirror->snapshot()->parts.empty());
    for (std::uint32_t seed = 1; seed < 20; ++seed) {
        const std::vector<float> query = index.random_rows(1, seed);
        const SearchOutcome outcome = search(client, request, query);
        const auto wanted = brute_force(all, query.data(), 10);
        for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(outcome.results[i].tid, all.tids[wanted[i].second]);
    }
}

}  // namespace
}  // namespace pgwarp
