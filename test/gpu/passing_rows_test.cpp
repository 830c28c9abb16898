// Rows that pass predicates, at their limits: none, one, the first or the last; more equal rows than a piece leaves
// entries; values at the ends of float32; predicates of millions of words. To the bit those of a scan.
#include <algorithm>
#include <random>
#include <thread>

#include "exact_fixture.h"
#include "graph_fixture.h"
#include "methods/tested_rows.h"
#include "predicate_fixture.h"

namespace pgwarp::test
{
namespace
{

// A searcher, and attributes of its rows: the number of the row, and the number modulo 10.
class Tested
{
public:
    static constexpr std::uint32_t columns = 2;

    Tested(Metric metric, std::size_t dimensions, std::vector<float> rows, bool graph = false)
        : dimensions_(dimensions), count_(rows.size() / dimensions)
    {
        if (metric == Metric::cosine) normalise_rows(rows, dimensions);
        if (graph) {
            const Index index(Method::graph, metric, dimensions, rows, make_list({{"vectors", 1}}), pool_);
            searcher_ = load_graph(index, shared_context(), pool_);
        } else {
            searcher_ = cuda::load(metric, {static_cast<std::uint32_t>(dimensions), rows, {}});
        }
        for (std::uint64_t row = 0; row < count_; ++row) {
            codes_.push_back(row);
            codes_.push_back(row % 10);
        }
    }

    std::size_t count() const { return count_; }
    std::vector<std::uint64_t> dead;

    std::vector<std::vector<RowResult>> search(const std::vector<float>& queries, std::uint32_t k,
                                               const std::vector<Predicate>& predicates) const
    {
        std::vector<RowFilter> filters;
        for (const Predicate& predicate : predicates) filters.push_back({predicate, codes_.data(), columns, 0, {}});
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / dimensions_;
        batch.k = k;
        batch.dead = dead;
        batch.filters = filters;
        std::vector<std::vector<RowResult>> found;
        dynamic_cast<const TestsAllRows&>(*searcher_).search_passing(batch, found, pool_);
        return found;
    }
    // By a scan to which all other rows are dead.
    std::vector<RowResult> scan(std::span<const float> query, std::uint32_t k, const Predicate& predicate) const
    {
        std::vector<std::uint64_t> others((count_ + 63) / 64, ~std::uint64_t{0});
        for (std::size_t row = 0; row < count_; ++row)
            if (passes(predicate, codes_.data() + row * columns) && !bit_is_set(dead, row))
                others[row / 64] &= ~(std::uint64_t{1} << row % 64);
        SearchBatch one;
        one.queries = query;
        one.count = 1;
        one.k = k;
        one.dead = others;
        std::vector<RowResult> found;
        searcher_->search_exact(one, -HUGE_VAL, 0, found, pool_);
        return found;
    }
    // Query i has predicate i modulo their number.
    void expect_right(const std::vector<float>& queries, std::uint32_t k, const std::vector<Predicate>& predicates)
    {
        const std::size_t asked = queries.size() / dimensions_;
        std::vector<Predicate> of_queries;
        for (std::size_t q = 0; q < asked; ++q) of_queries.push_back(predicates[q % predicates.size()]);
        const auto found = search(queries, k, of_queries);
        ASSERT_EQ(found.size(), asked);
        for (std::size_t q = 0; q < asked; ++q) {
            const auto right =
                scan(std::span(queries).subspan(q * dimensions_, dimensions_), k, predicates[q % predicates.size()]);
            ASSERT_EQ(found[q].size(), right.size()) << "query " << q << ", k " << k;
            for (std::size_t i = 0; i < right.size(); ++i) {
                ASSERT_EQ(found[q][i].row, right[i].row) << "query " << q << " place " << i << ", k " << k;
                ASSERT_EQ(found[q][i].distance, right[i].distance) << "query " << q << " place " << i;
            }
        }
    }

private:
    std::size_t dimensions_;
    std::size_t count_;
    std::vector<std::uint64_t> codes_;
    mutable ThreadPool pool_{2};
    std::unique_ptr<Searcher> searcher_;
};

std::vector<Predicate> about_the_ends(std::size_t rows)
{
    return {Predicate().where(0, {}),
            Predicate().where(0, 0, 0),
            Predicate().where(0, rows - 1, rows - 1),
            Predicate().where(0, rows, rows + 5),
            Predicate().where(0, 0, ~std::uint64_t{0}),
            Predicate().where(0, {{0, 0}, {std::max<std::uint64_t>(rows - 1, 1), ~std::uint64_t{0}}}),
            Predicate().where(0, rows / 2, rows).where(1, 3, 3),
            Predicate()};
}

TEST(PassingRows, NoneOneAndAll)
{
    for (const std::size_t count : {1, 2, 1024, 1025, 40000}) {
        SCOPED_TRACE(std::to_string(count) + " rows");
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
            Tested tested(metric, 8, random_rows(count, 8, 1));
            std::vector<float> queries = random_rows(24, 8, 2);
            if (metric == Metric::cosine) normalise_rows(queries, 8);
            for (const std::uint32_t k : {1U, 10U, 512U}) {
                tested.dead.clear();
                ASSERT_NO_FATAL_FAILURE(tested.expect_right(queries, k, about_the_ends(count)));
                tested.dead.assign((count + 63) / 64, ~std::uint64_t{0});
                ASSERT_NO_FATAL_FAILURE(tested.expect_right(queries, k, about_the_ends(count)));
                tested.dead[(count - 1) / 64] &= ~(std::uint64_t{1} << (count - 1) % 64);
                ASSERT_NO_FATAL_FAILURE(tested.expect_right(queries, k, about_the_ends(count)));
            }
        }
    }
}

// Pieces leave at most k and a few entries each; equal rows are the first by number.
TEST(PassingRows, MoreEqualRowsThanEntries)
{
    for (const bool graph : {false, true}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product}) {
            const std::vector<float> some = random_rows(2, 12, 3);
            std::vector<float> rows;
            for (std::size_t row = 0; row < 5000; ++row)
                rows.insert(rows.end(), some.begin() + (row % 1000 == 999 ? 12 : 0),
                            some.begin() + (row % 1000 == 999 ? 24 : 12));
            Tested tested(metric, 12, rows, graph);
            const std::vector<float> queries = random_rows(9, 12, 4);
            for (const std::uint32_t k : {1U, 15U, 16U, 17U, 200U, 512U})
                ASSERT_NO_FATAL_FAILURE(tested.expect_right(queries, k, about_the_ends(5000)));
        }
    }
}

// Sums in single precision overflow, or have no bits left.
TEST(PassingRows, HugeAndTinyValues)
{
    std::mt19937 random(5);
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
        for (const float size : {1e-42F, 1e-30F, 1e18F, 2e19F, 1e30F, 1e38F}) {
            SCOPED_TRACE("metric " + std::to_string(static_cast<int>(metric)) + ", size " + std::to_string(size));
            std::vector<float> rows = random_rows(2100, 8, 6);
            for (std::size_t i = 0; i < rows.size(); ++i)
                rows[i] = std::clamp(rows[i] / 4, -3.0F, 3.0F) * (i / 8 % 3 == 0 ? 1.0F : size);
            Tested tested(metric, 8, rows);
            std::vector<float> queries(rows.begin(), rows.begin() + 8 * 7);
            for (std::size_t i = 0; i < 8 * 5; ++i) queries.push_back(size / 3 * static_cast<float>(random() % 7));
            for (std::size_t i = 0; i < 8; ++i) queries.push_back(0);
            for (const std::uint32_t k : {1U, 10U, 300U})
                ASSERT_NO_FATAL_FAILURE(
                    tested.expect_right(queries, k, {Predicate(), Predicate().where(1, 2, 7), Predicate()}));
        }
    }
}

// A predicate alone is as long as all that are sent together.
TEST(PassingRows, PredicatesOfMillionsOfWords)
{
    Tested tested(Metric::l2, 4, random_rows(3000, 4, 7));
    Ranges odd;
    for (std::uint64_t code = 1; odd.size() < 1500000; code += 2) odd.push_back({code, code});
    Ranges even;
    for (std::uint64_t code = 0; even.size() < 2200000; code += 2) even.push_back({code, code});
    const std::vector<Predicate> predicates = {Predicate().where(0, odd), Predicate(), Predicate().where(0, even)};
    ASSERT_NO_FATAL_FAILURE(tested.expect_right(random_rows(7, 4, 8), 10, predicates));
}

// The first of several searches at a time sends the attributes, for which the others wait.
TEST(PassingRows, OfSearchesAtATime)
{
    for (int turn = 0; turn < 4; ++turn) {
        Tested tested(turn % 2 == 0 ? Metric::l2 : Metric::l1, 20, random_rows(30000, 20, 11));
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 8; ++number)
            threads.emplace_back([&tested, number] {
                const std::vector<float> queries = random_rows(std::size_t{1} + 9 * number, 20, 12 + number);
                for (const std::uint32_t k : {1U, 40U})
                    ASSERT_NO_FATAL_FAILURE(tested.expect_right(queries, k, about_the_ends(29000 + 200 * number)));
            });
        for (std::thread& thread : threads) thread.join();
    }
}

// Queries of every pass rate down to none, some without a predicate. The values of row i: 7 i modulo the rows.
struct GraphFilters {
    std::vector<std::uint64_t> codes;
    std::vector<Predicate> predicates;
    std::vector<RowFilter> filters;

    GraphFilters(std::size_t rows, std::size_t queries)
    {
        for (std::uint64_t row = 0; row < rows; ++row) codes.push_back(row * 7 % rows);
        predicates.reserve(queries);
        for (std::size_t q = 0; q < queries; ++q) {
            const std::uint64_t passing = q % 5 == 4 ? 0 : rows >> q % 5 * 2;
            predicates.push_back(passing > 0 ? Predicate().where(0, 0, passing - 1) : Predicate().where(0, {}));
            const bool all = q % 7 == 6;
            filters.push_back({all ? std::span<const std::uint64_t>() : predicates.back(),
                               codes.data(),
                               1,
                               all ? rows : passing,
                               {}});
        }
    }
};

// The graph's own search by predicates: what it finds lives, passes and comes once, in order; the rest is the caller's.
TEST(PassingRows, OfTheGraphsTraversal)
{
    constexpr std::size_t dimensions = 16;
    constexpr std::size_t count = 3000;
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(count, dimensions, 9);
    const std::vector<float> queries = random_rows(300, dimensions, 10);
    const GraphFilters of(count, 300);
    std::vector<std::uint64_t> dead((count + 63) / 64);
    for (std::size_t row = 0; row < count; row += 5) set_bit(dead, row);
    const auto expect_sound = [&](const std::vector<RowResult>& found, std::size_t q, std::uint32_t k) {
        ASSERT_LE(found.size(), k);
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_LT(found[i].row, count);
            ASSERT_FALSE(bit_is_set(dead, found[i].row)) << "query " << q;
            ASSERT_TRUE(of.filters[q].passes(found[i].row)) << "query " << q << " row " << found[i].row;
            if (i > 0) {
                ASSERT_TRUE(comes_before(found[i - 1], found[i])) << "query " << q;
            }
        }
    };
    for (const int vectors : {0, 1}) {
        const Index index(Method::graph, Metric::l2, dimensions, rows, make_list({{"vectors", vectors}}), pool);
        const auto searcher = load_graph(index, shared_context(), pool);
        for (const std::size_t asked : {1, 3, 65, 300}) {
            for (const std::uint32_t k : {1U, 10U, 200U}) {
                SearchBatch batch;
                batch.queries = std::span(queries).first(asked * dimensions);
                batch.count = asked;
                batch.k = k;
                batch.effort = 60;
                batch.dead = dead;
                batch.filters = std::span(of.filters).first(asked);
                std::vector<std::vector<RowResult>> found;
                searcher->search(batch, found, pool);
                ASSERT_EQ(found.size(), asked);
                for (std::size_t q = 0; q < asked; ++q) ASSERT_NO_FATAL_FAILURE(expect_sound(found[q], q, k));
                // Of the first query's rows all pass.
                EXPECT_GT(found[0].size(), 0U) << asked << " queries, k " << k;
            }
        }
    }
}

}  // namespace
}  // namespace pgwarp::test
