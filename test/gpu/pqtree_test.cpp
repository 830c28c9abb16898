// Searches of pqtree on the device against those on the CPU: values have the same bits, and answers differ only where
// single precision decides which bins and rows are the last to be looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <ostream>

#include "methods/pqtree/description.h"
#include "methods/pqtree/pqtree.h"
#include "methods_fixture.h"
#include "pqtree/pqtree.h"
#include "shared_context.h"

namespace pgwarp::test
{
namespace
{

struct Case {
    const char* name;
    Metric metric;
    std::size_t dimensions;
    std::vector<std::pair<const char*, std::int64_t>> options;

    std::int64_t parts() const { return parameters().get("parts", 0); }
    ParameterList parameters() const
    {
        ParameterList list;
        for (const auto& [option, value] : options) list.set(option, value);
        return list;
    }
};

void PrintTo(const Case& given, std::ostream* out)
{
    *out << given.name;
}

constexpr std::int64_t none = static_cast<std::int64_t>(TreeRefine::none);
constexpr std::int64_t half = static_cast<std::int64_t>(TreeRefine::half);
constexpr std::int64_t full = static_cast<std::int64_t>(TreeRefine::full);

class PqtreeOnDevice : public testing::TestWithParam<Case>
{
protected:
    static constexpr std::size_t count = 20000;
    static constexpr std::size_t query_count = 200;

    void SetUp() override
    {
        const Case& given = GetParam();
        rows_ = random_rows(count, given.dimensions, 3);
        queries_ = random_rows(query_count, given.dimensions, 4);
        // Queries near rows, as those of users are.
        for (std::size_t q = 0; q < query_count; ++q) {
            for (std::size_t d = 0; d < given.dimensions; ++d) {
                float& value = queries_[q * given.dimensions + d];
                value = rows_[q * 97 * given.dimensions + d] + 0.1F * value;
            }
        }
        if (given.metric == Metric::cosine) {
            normalise_rows(rows_, given.dimensions);
            normalise_rows(queries_, given.dimensions);
        }
        index_ =
            std::make_unique<Index>(Method::pqtree, given.metric, given.dimensions, rows_, given.parameters(), pool_);
        device_ = load({});
    }

    // Loads the index on the device, with the bytes of `other` in the place of an array of that name.
    std::unique_ptr<Searcher> load(const std::map<std::string, std::vector<std::byte>>& other)
    {
        auto searcher = cuda::pqtree::make_searcher(index_->shape, index_->builder->effective_options(),
                                                    index_->builder->arrays(), shared_context());
        for (const ArrayShape& array : index_->builder->arrays()) {
            const auto replaced = other.find(array.name);
            const std::vector<std::byte> bytes = replaced != other.end() ? replaced->second : index_->contents(array);
            for (std::size_t offset = 0; offset < bytes.size(); offset += 70001) {
                const std::size_t length = std::min<std::size_t>(70001, bytes.size() - offset);
                searcher->write(array.name, offset, std::span(bytes).subspan(offset, length));
            }
        }
        searcher->finish_load(pool_);
        return searcher;
    }

    SearchBatch batch_of(std::size_t queries, std::uint32_t k, std::int64_t candidates) const
    {
        SearchBatch batch;
        batch.queries = std::span(queries_).first(queries * GetParam().dimensions);
        batch.count = queries;
        batch.k = k;
        batch.effort = candidates;
        return batch;
    }
    std::vector<std::vector<RowResult>> on_device(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> results;
        device_->search(batch, results, pool_);
        return results;
    }
    std::vector<std::vector<RowResult>> on_cpu(const SearchBatch& batch)
    {
        std::vector<std::vector<RowResult>> results;
        index_->searcher->search(batch, results, pool_);
        return results;
    }

    // The share of the device's rows that the CPU finds too; their values must be equal.
    double agreement(const SearchBatch& batch)
    {
        const auto found = on_device(batch);
        const auto wanted = on_cpu(batch);
        std::size_t same = 0;
        std::size_t all = 0;
        for (std::size_t q = 0; q < batch.count; ++q) {
            EXPECT_EQ(found[q].size(), wanted[q].size()) << "query " << q;
            std::map<std::uint32_t, double> values;
            for (const RowResult& one : wanted[q]) values[one.row] = one.distance;
            for (std::size_t i = 0; i < found[q].size(); ++i) {
                const RowResult& one = found[q][i];
                EXPECT_TRUE(i == 0 || comes_in_order(found[q][i - 1], one)) << "query " << q << ", result " << i;
                const auto at = values.find(one.row);
                if (at == values.end()) continue;
                EXPECT_EQ(one.distance, at->second) << "query " << q << ", row " << one.row;
                ++same;
            }
            all += wanted[q].size();
        }
        return static_cast<double>(same) / static_cast<double>(std::max<std::size_t>(all, 1));
    }
    static bool comes_in_order(const RowResult& a, const RowResult& b)
    {
        return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
    }

    ThreadPool pool_{0};
    std::vector<float> rows_;
    std::vector<float> queries_;
    std::unique_ptr<Index> index_;
    std::unique_ptr<Searcher> device_;
};

TEST_P(PqtreeOnDevice, AnswersLikeTheCpu)
{
    for (const std::int64_t candidates : {300, 2000, 12000}) {
        for (const std::uint32_t k : {1U, 10U, 100U}) {
            for (const std::size_t queries : {std::size_t{1}, query_count}) {
                SCOPED_TRACE(std::to_string(candidates) + " candidates, k " + std::to_string(k));
                const double same = agreement(batch_of(queries, k, candidates));
                if (queries > 1) {
                    std::printf("[ measured ] %s: %lld candidates, k %u: %.4f equal\n", GetParam().name,
                                static_cast<long long>(candidates), k, same);
                    // Where so many candidates lie in more than two bins a row, the CPU compares all rows and finds
                    // more.
                    const bool sparse = GetParam().parts() > 3 && candidates > 10000;
                    EXPECT_GE(same, sparse ? 0.9 : 0.985);
                }
            }
        }
    }
}

// Indexes whose line codes order badly rank all candidates by vectors, more than a block keeps.
TEST_P(PqtreeOnDevice, RanksAllCandidatesWhereTheIndexAsksForIt)
{
    ParameterList options = index_->builder->effective_options();
    options.set(option_ranked_share, 1);
    const TreeOptions resolved = TreeOptions::resolve(options, count, GetParam().dimensions);
    if (!resolved.keeps_vectors()) GTEST_SKIP() << "the index keeps no vectors";
    const auto searcher =
        cuda::pqtree::make_searcher(index_->shape, options, index_->builder->arrays(), shared_context());
    index_->write_to(*searcher);
    searcher->finish_load(pool_);
    std::vector<std::vector<RowResult>> found;
    searcher->search(batch_of(query_count, 10, 4000), found, pool_);
    const auto exact = on_cpu(batch_of(query_count, 10, static_cast<std::int64_t>(count)));
    for (std::size_t q = 0; q < query_count; ++q) EXPECT_EQ(ids(found[q]), ids(exact[q])) << "query " << q;
}

TEST_P(PqtreeOnDevice, AnswersTheSameTwice)
{
    const SearchBatch batch = batch_of(query_count, 10, 2000);
    const auto first = on_device(batch);
    const auto again = on_device(batch);
    for (std::size_t q = 0; q < batch.count; ++q) EXPECT_EQ(ids(first[q]), ids(again[q])) << "query " << q;
}

// Fewer blocks share a query where the one that ranks has no room for what all of them propose.
TEST_P(PqtreeOnDevice, AnswersTheSameOnSmallerDevices)
{
    if (GetParam().parameters().get("line_parts", 0) > 16) GTEST_SKIP() << "terms of so many lines have no room";
    const SearchBatch batch = batch_of(1, 300, 4000);
    const auto found = on_device(batch);
    shared_context().limit_shared_bytes(std::size_t{99} << 10);  // of sm_86 and sm_89
    const auto again = on_device(batch);
    shared_context().limit_shared_bytes(SIZE_MAX);
    EXPECT_EQ(ids(found[0]), ids(again[0]));
}

// Where a block has no room to rank so many rows, all rows are compared, and answers are at least as near.
TEST_P(PqtreeOnDevice, AnswersWhereABlockHasNoRoom)
{
    for (const std::size_t queries : {std::size_t{1}, query_count}) {
        for (const std::uint32_t k : {10U, 600U, 2048U}) {
            const SearchBatch batch = batch_of(queries, k, 4000);
            const auto found = on_device(batch);
            shared_context().limit_shared_bytes(std::size_t{99} << 10);
            const auto again = on_device(batch);
            shared_context().limit_shared_bytes(SIZE_MAX);
            for (std::size_t q = 0; q < queries; ++q) {
                ASSERT_EQ(again[q].size(), k);
                for (std::size_t i = 0; i < k; ++i)
                    ASSERT_LE(again[q][i].distance, found[q][i].distance) << "k " << k << ", query " << q;
            }
        }
    }
}

// Where a block has no room for so many proposals, it makes fewer: the best.
TEST_P(PqtreeOnDevice, ProposesWhereABlockHasNoRoom)
{
    SearchBatch batch = batch_of(query_count, 2000, 4000);
    batch.proposals_will_do = true;
    const auto found = on_device(batch);
    shared_context().limit_shared_bytes(std::size_t{99} << 10);
    const auto again = on_device(batch);
    shared_context().limit_shared_bytes(SIZE_MAX);
    for (std::size_t q = 0; q < batch.count; ++q) {
        ASSERT_GE(again[q].size(), 500U);
        const std::vector<std::uint32_t> all = ids(found[q]);
        ASSERT_LE(again[q].size(), all.size());
        EXPECT_EQ(ids(again[q]), std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(again[q].size())));
    }
}

TEST_P(PqtreeOnDevice, ProposesLikeTheCpu)
{
    SearchBatch batch = batch_of(query_count, 50, 2000);
    batch.proposals_will_do = true;
    const auto found = on_device(batch);
    const auto wanted = on_cpu(batch);
    std::size_t same = 0;
    for (std::size_t q = 0; q < batch.count; ++q) {
        ASSERT_EQ(found[q].size(), wanted[q].size());
        std::map<std::uint32_t, double> scores;
        for (const RowResult& one : wanted[q]) scores[one.row] = one.distance;
        const double range = std::abs(wanted[q].front().distance) + std::abs(wanted[q].back().distance);
        for (const RowResult& one : found[q]) {
            const auto at = scores.find(one.row);
            if (at == scores.end()) continue;
            ++same;
            EXPECT_NEAR(one.distance, at->second, 0.01 * range) << "query " << q << ", row " << one.row;
        }
    }
    EXPECT_GE(static_cast<double>(same), 0.97 * 50 * query_count);
}

TEST_P(PqtreeOnDevice, SearchesAllRowsExactly)
{
    const SearchBatch batch = batch_of(7, 20, 0);
    const auto found = on_device(batch);
    const auto wanted = on_cpu(batch);
    for (std::size_t q = 0; q < batch.count; ++q) {
        ASSERT_EQ(ids(found[q]), ids(wanted[q])) << "query " << q;
        for (std::size_t i = 0; i < found[q].size(); ++i) EXPECT_EQ(found[q][i].distance, wanted[q][i].distance);
    }
}

TEST_P(PqtreeOnDevice, Continues)
{
    const SearchBatch batch = batch_of(1, 300, 2000);
    RowResult after{-std::numeric_limits<double>::infinity(), 0};
    for (int turn = 0; turn < 3; ++turn) {
        std::vector<RowResult> wanted;
        std::vector<RowResult> found;
        index_->searcher->search_exact(batch, after.distance, after.row, wanted, pool_);
        device_->search_exact(batch, after.distance, after.row, found, pool_);
        ASSERT_EQ(ids(found), ids(wanted));
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].distance, wanted[i].distance);
        after = wanted.back();
    }
}

TEST_P(PqtreeOnDevice, LeavesOutDeadRows)
{
    for (const std::size_t every : {2, 10}) {  // one row of so many lives
        std::vector<std::uint64_t> dead((count + 63) / 64, 0);
        for (std::size_t row = 0; row < count; ++row) {
            if (row % every != 0) dead[row / 64] |= std::uint64_t{1} << row % 64;
        }
        SearchBatch batch = batch_of(query_count, 10, 1000);
        batch.dead = dead;
        batch.dead_version = new_bitmap_version();
        const auto found = on_device(batch);
        for (std::size_t q = 0; q < batch.count; ++q) {
            EXPECT_EQ(found[q].size(), 10U);
            for (const RowResult& one : found[q]) EXPECT_EQ(one.row % every, 0U) << "query " << q;
        }
        const double same = agreement(batch);
        std::printf("[ measured ] %s: one row of %zu lives: %.4f equal\n", GetParam().name, every, same);
        EXPECT_GE(same, 0.97);
    }
}

TEST_P(PqtreeOnDevice, RefusesImpossibleCodes)
{
    for (const ArrayShape& array : index_->builder->arrays()) {
        if (std::string(array.name) != array_tree_codes) continue;
        std::vector<std::byte> bytes = index_->contents(array);
        bytes[1] = std::byte{0xff};  // a leaf of the first row
        EXPECT_THROW(load({{array.name, bytes}}), BadRequest);
    }
}

std::unique_ptr<Searcher> load_on_device(const Index& index, ThreadPool& pool)
{
    auto searcher = cuda::pqtree::make_searcher(index.shape, index.builder->effective_options(),
                                                index.builder->arrays(), shared_context());
    index.write_to(*searcher);
    searcher->finish_load(pool);
    return searcher;
}

// Blocks of few queries are larger, and several share a query.
TEST(PqtreeSearch, AnswersTheSameInEveryBatch)
{
    constexpr std::size_t dimensions = 24;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(30000, dimensions, 31);
    const std::vector<float> queries = random_rows(1000, dimensions, 32);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"k1", 16}, {"k2", 8}}), pool);
    const auto searcher = load_on_device(index, pool);
    const auto search = [&](std::size_t count, std::uint32_t k) {
        SearchBatch batch;
        batch.queries = std::span(queries).first(count * dimensions);
        batch.count = count;
        batch.k = k;
        batch.effort = 2000;
        std::vector<std::vector<RowResult>> found;
        searcher->search(batch, found, pool);
        return found;
    };
    for (const std::uint32_t k : {10U, 200U}) {
        const auto all = search(1000, k);
        for (const std::size_t count : {1, 15, 17, 66, 132}) {
            const auto some = search(count, k);
            for (std::size_t q = 0; q < count; ++q)
                ASSERT_EQ(ids(some[q]), ids(all[q])) << count << " queries, k " << k << ", query " << q;
        }
    }
}

// All sums of equal leaves are equal, and rounding must leave none of them out.
TEST(PqtreeSearch, CombinesEqualLeaves)
{
    constexpr std::size_t dimensions = 12;
    ThreadPool pool(0);
    std::vector<float> rows = random_rows(700, dimensions, 51);
    for (std::size_t i = dimensions; i < rows.size(); ++i) rows[i] = rows[i % dimensions];
    const std::vector<float> queries = random_rows(200, dimensions, 52);
    for (const std::int64_t parts : {1, 2, 3, 4}) {
        const Index index(Method::pqtree, Metric::l2, dimensions, rows,
                          make_list({{"parts", parts}, {"k1", 4}, {"k2", 2}, {"line_parts", 12}}), pool);
        const auto searcher = load_on_device(index, pool);
        SearchBatch batch;
        batch.queries = queries;
        batch.count = 200;
        batch.k = 10;
        batch.effort = 400;
        std::vector<std::vector<RowResult>> found;
        std::vector<std::vector<RowResult>> wanted;
        searcher->search(batch, found, pool);
        index.searcher->search(batch, wanted, pool);
        for (std::size_t q = 0; q < batch.count; ++q) {
            ASSERT_EQ(found[q].size(), 10U);
            EXPECT_EQ(found[q].back().distance, wanted[q].back().distance);
        }
    }
}

// Searches take any part of a block's shared memory, up to the last bytes.
TEST(PqtreeSearch, TakesAllOfTheSharedMemory)
{
    constexpr std::size_t dimensions = 150;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(4000, dimensions, 21);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows,
                      make_list({{"k1", 128}, {"k2", 8}, {"line_parts", 150}}), pool);
    const auto searcher = load_on_device(index, pool);
    SearchBatch batch;
    batch.queries = std::span(rows).first(dimensions);
    batch.count = 1;
    for (const std::uint32_t k : {300U, 400U, 480U}) {
        for (std::int64_t width = 1; width <= 128; ++width) {
            batch.k = k;
            batch.settings = make_list({{"candidates", 2000}, {"width", width}});
            std::vector<std::vector<RowResult>> found;
            ASSERT_NO_THROW(searcher->search(batch, found, pool)) << "k " << k << ", width " << width;
            EXPECT_EQ(found[0].size(), k);
        }
    }
}

// Squares of differences below 1e-38 have few bits or none in single precision.
TEST(PqtreeSearch, RanksRowsThatAreVeryNear)
{
    constexpr std::size_t dimensions = 32;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(500, dimensions, 22, 1e-22F);
    const std::vector<float> queries = random_rows(20, dimensions, 23, 1e-22F);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"refine", full}}), pool);
    const auto searcher = load_on_device(index, pool);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = 20;
    batch.k = 125;       // of which four times as many are ranked: all rows
    batch.effort = 499;  // fewer than all, which would be compared without a choice
    std::vector<std::vector<RowResult>> found;
    searcher->search(batch, found, pool);
    for (std::size_t q = 0; q < batch.count; ++q) {
        const auto truth = brute_force(Metric::l2, queries.data() + q * dimensions, rows, dimensions, batch.k);
        EXPECT_EQ(ids(found[q]), ids(truth)) << "query " << q;
    }
}

// Scores of such rows are near the smallest floats.
TEST(PqtreeSearch, OrdersSmallVectorsByLineCodes)
{
    constexpr std::size_t dimensions = 32;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(3000, dimensions, 41, 1e-18F);
    const std::vector<float> queries = random_rows(50, dimensions, 42, 1e-18F);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"k1", 8}, {"k2", 4}}), pool);
    const auto searcher = load_on_device(index, pool);
    SearchBatch batch;
    batch.queries = queries;
    batch.count = 50;
    batch.k = 10;
    batch.effort = 400;
    std::vector<std::vector<RowResult>> found;
    searcher->search(batch, found, pool);
    std::size_t right = 0;
    for (std::size_t q = 0; q < batch.count; ++q) {
        for (const RowResult& one : brute_force(Metric::l2, queries.data() + q * dimensions, rows, dimensions, 10)) {
            for (const RowResult& other : found[q]) right += one.row == other.row ? 1 : 0;
        }
    }
    EXPECT_GE(right, 450U);  // of 500; the CPU finds 472
}

// The CPU serves them.
TEST(PqtreeSearch, HasNoRoomForLinesTooLongForFloats)
{
    constexpr std::size_t dimensions = 32;
    ThreadPool pool(0);
    const std::vector<float> rows = random_rows(1000, dimensions, 43, 1e18F);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"k1", 8}, {"k2", 4}}), pool);
    EXPECT_THROW(load_on_device(index, pool), std::bad_alloc);
}

INSTANTIATE_TEST_SUITE_P(
    Indexes, PqtreeOnDevice,
    testing::Values(
        Case{"l2 halves", Metric::l2, 32, {{"k1", 16}, {"k2", 8}, {"refine", half}}},
        Case{"l2 vectors", Metric::l2, 32, {{"k1", 16}, {"k2", 8}, {"refine", full}}},
        Case{"l2 codes", Metric::l2, 32, {{"k1", 32}, {"k2", 4}, {"line_parts", 8}, {"refine", none}}},
        Case{"product halves", Metric::inner_product, 24, {{"k1", 16}, {"k2", 8}, {"refine", half}}},
        Case{"product codes", Metric::inner_product, 24, {{"k1", 16}, {"k2", 8}, {"refine", none}}},
        Case{"cosine vectors", Metric::cosine, 48, {{"k1", 16}, {"k2", 8}, {"refine", full}}},
        Case{"one part", Metric::l2, 17, {{"parts", 1}, {"k1", 32}, {"k2", 32}, {"line_parts", 5}}},
        Case{"three parts", Metric::l2, 19, {{"parts", 3}, {"k1", 8}, {"k2", 4}, {"line_parts", 6}}},
        Case{"four parts, hashed", Metric::l2, 31, {{"parts", 4}, {"k1", 16}, {"k2", 8}, {"line_parts", 8}}},
        Case{"many line parts", Metric::l2, 200, {{"k1", 16}, {"k2", 4}, {"line_parts", 50}}},
        Case{"many leaves", Metric::l2, 16, {{"k1", 64}, {"k2", 32}, {"line_parts", 16}}},
        Case{"large tables", Metric::l2, 240, {{"k1", 96}, {"k2", 2}, {"line_parts", 30}, {"refine", none}}}),
    [](const auto& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace pgwarp::test
