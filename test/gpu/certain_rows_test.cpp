// The nearest of certain rows: to the bit those of a scan to which all other rows are dead.
#include <random>

#include "exact_fixture.h"
#include "graph_fixture.h"
#include "methods/tested_rows.h"
#include "predicate_fixture.h"

namespace pgwarp::test
{
namespace
{

using Lists = std::vector<std::vector<std::uint32_t>>;

struct Case {
    Method method;
    Metric metric;
    int vectors;  // GraphVectors of a graph
    std::size_t dimensions;

    friend void PrintTo(const Case& one, std::ostream* out)
    {
        *out << (one.method == Method::exact ? "exact" : "graph") << one.vectors << " metric "
             << static_cast<int>(one.metric) << " of " << one.dimensions;
    }
};

class CertainRows : public testing::TestWithParam<Case>
{
protected:
    static constexpr std::size_t asked = 3;

    void load(std::vector<float> rows, std::vector<float> queries)
    {
        const Case& one = GetParam();
        if (one.metric == Metric::cosine) {
            normalise_rows(rows, one.dimensions);
            normalise_rows(queries, one.dimensions);
        }
        count_ = rows.size() / one.dimensions;
        queries_ = queries;
        if (one.method == Method::exact) {
            searcher_ = cuda::load(one.metric, {static_cast<std::uint32_t>(one.dimensions), rows, queries});
        } else {
            const Index index(one.method, one.metric, one.dimensions, rows, make_list({{"vectors", one.vectors}}),
                              pool_);
            searcher_ = load_graph(index, shared_context(), pool_);
        }
        ASSERT_TRUE(searcher_->compares_certain_rows());
    }
    void load_random(std::size_t count)
    {
        const std::size_t dimensions = GetParam().dimensions;
        load(random_rows(count, dimensions, 1), random_rows(asked, dimensions, 2));
    }

    SearchBatch batch_of(std::size_t first, std::size_t count, std::uint32_t k) const
    {
        const std::size_t dimensions = GetParam().dimensions;
        SearchBatch batch;
        batch.queries = std::span(queries_).subspan(first * dimensions, count * dimensions);
        batch.count = count;
        batch.k = k;
        batch.dead = dead_;
        return batch;
    }
    std::vector<RowResult> scan(std::size_t query, RowList list, std::uint32_t k, const RowResult& after) const
    {
        std::vector<std::uint64_t> others((count_ + 63) / 64, ~std::uint64_t{0});
        for (const std::uint32_t row : list)
            if (!bit_is_set(dead_, row)) others[row / 64] &= ~(std::uint64_t{1} << row % 64);
        SearchBatch one = batch_of(query, 1, k);
        one.dead = others;
        std::vector<RowResult> found;
        searcher_->search_exact(one, after.distance, after.row, found, pool_);
        return found;
    }
    // list i for query i % asked.
    void expect_nearest(std::span<const RowList> lists, std::uint32_t k, const RowResult& after = before_all)
    {
        SearchBatch batch = batch_of(0, asked, k);
        std::vector<float> repeated;
        for (std::size_t i = 0; i < lists.size(); ++i) {
            const auto query = batch_of(i % asked, 1, k).queries;
            repeated.insert(repeated.end(), query.begin(), query.end());
        }
        batch.queries = repeated;
        batch.count = lists.size();
        Results found;
        searcher_->search_among(batch, lists, after, found, pool_);
        ASSERT_EQ(found.size(), lists.size());
        for (std::size_t i = 0; i < lists.size(); ++i) {
            const auto wanted = scan(i % asked, lists[i], k, after);
            ASSERT_EQ(found[i].size(), wanted.size()) << "list " << i << ", k " << k;
            for (std::size_t j = 0; j < wanted.size(); ++j) {
                ASSERT_EQ(found[i][j].row, wanted[j].row) << "list " << i << " place " << j << ", k " << k;
                ASSERT_EQ(found[i][j].distance, wanted[j].distance) << "list " << i << " place " << j;
            }
        }
    }
    std::vector<std::uint32_t> shuffled() const
    {
        std::vector<std::uint32_t> order(count_);
        for (std::uint32_t row = 0; row < count_; ++row) order[row] = row;
        std::shuffle(order.begin(), order.end(), std::mt19937(5));
        return order;
    }
    void kill_some()
    {
        dead_.assign((count_ + 63) / 64, 0);
        for (std::size_t row = 0; row < count_; row += 3) set_bit(dead_, row);
    }

    // Rows that pass predicates, of which no list is given.
    void expect_passing()
    {
        constexpr std::uint32_t columns = 3;
        constexpr std::uint64_t values = 500;
        constexpr std::size_t count = 40;
        const auto& tester = dynamic_cast<const TestsAllRows&>(*searcher_);
        const std::vector<std::uint64_t> codes = random_attributes(count_, columns, values, 7);
        std::mt19937_64 random(8);
        std::vector<Predicate> wanted;
        for (std::size_t q = 0; q < count; ++q) wanted.push_back(random_predicate(random, columns, values));
        std::vector<RowFilter> filters;
        Lists passing(count);
        std::vector<float> repeated;
        for (std::size_t q = 0; q < count; ++q) {
            filters.push_back(
                {q % 9 == 0 ? std::span<const std::uint64_t>() : wanted[q], codes.data(), columns, 0, {}});
            for (std::uint32_t row = 0; row < count_; ++row)
                if (filters[q].passes(row)) passing[q].push_back(row);
            const auto query = batch_of(q % asked, 1, 1).queries;
            repeated.insert(repeated.end(), query.begin(), query.end());
        }
        for (const bool with_dead : {false, true}) {
            if (with_dead) kill_some();
            for (const std::uint32_t k : {1U, 10U, 512U}) {
                SearchBatch batch = batch_of(0, asked, k);
                batch.queries = repeated;
                batch.count = count;
                batch.filters = filters;
                ASSERT_TRUE(tester.tests_all_rows(k));
                Results found;
                tester.search_passing(batch, found, pool_);
                for (std::size_t q = 0; q < count; ++q) {
                    const auto right = scan(q % asked, passing[q], k, before_all);
                    ASSERT_EQ(found[q].size(), right.size()) << "query " << q << ", k " << k;
                    for (std::size_t i = 0; i < right.size(); ++i) {
                        ASSERT_EQ(found[q][i].row, right[i].row) << "query " << q << " place " << i;
                        ASSERT_EQ(found[q][i].distance, right[i].distance) << "query " << q << " place " << i;
                    }
                }
            }
        }
    }

    mutable ThreadPool pool_{2};
    std::unique_ptr<Searcher> searcher_;
    std::vector<float> queries_;
    std::vector<std::uint64_t> dead_;
    std::size_t count_ = 0;
};

// Stretches of one order, which overlap, and lists of their own.
TEST_P(CertainRows, AreThoseOfAScan)
{
    load_random(4000);
    const std::vector<std::uint32_t> order = shuffled();
    const RowList all(order);
    const std::vector<std::uint32_t> own(order.begin() + 70, order.begin() + 200);
    const std::vector<RowList> lists{{},
                                     all.first(1),
                                     own,
                                     all.subspan(5, 2),
                                     all.subspan(100, 17),
                                     all.subspan(90, 63),
                                     all.subspan(3000, 64),
                                     all.subspan(2990, 65),
                                     own,
                                     all.subspan(1000, 1023),
                                     all.subspan(999, 1024),
                                     all.subspan(998, 1025),
                                     all};
    for (const bool with_dead : {false, true}) {
        if (with_dead) kill_some();
        for (const std::uint32_t k : {1U, 10U, 100U, 512U, 513U, 2000U}) {
            expect_nearest(lists, k);
            if (HasFatalFailure()) return;
        }
    }
    expect_nearest(std::vector<RowList>(5), 10);
}

// Pages of a list, each behind the one before, to its last row.
TEST_P(CertainRows, GoOnBehindARow)
{
    load_random(3000);
    const std::vector<std::uint32_t> order = shuffled();
    const std::vector<RowList> lists(1, RowList(order).subspan(17, 2500));
    RowResult after = before_all;
    for (std::size_t offered = 0; offered < 2600; offered += 400) {
        expect_nearest(lists, 400, after);
        if (HasFatalFailure()) return;
        const auto page = scan(0, lists[0], 400, after);
        if (!page.empty()) after = page.back();
    }
}

// Rows nearer to a query than halves tell, and equal ones, have values in common.
TEST_P(CertainRows, HaveAnOrderWhereValuesAreEqual)
{
    const std::size_t dimensions = GetParam().dimensions;
    std::vector<float> rows = random_rows(3000, dimensions, 1, 100);
    const std::vector<float> queries = random_rows(asked, dimensions, 2, 100);
    std::mt19937 random(3);
    std::normal_distribution<float> noise(0, 1e-3F);
    for (std::size_t row = 0; row < 2400; ++row) {
        for (std::size_t d = 0; d < dimensions; ++d)
            rows[row * dimensions + d] = queries[row % asked * dimensions + d] + (row % 4 == 0 ? 0 : noise(random));
    }
    load(rows, queries);
    const std::vector<std::uint32_t> order = shuffled();
    for (const std::uint32_t k : {1U, 10U, 100U, 512U, 600U}) {
        expect_nearest({{RowList(order), RowList(order).first(900), RowList(order).subspan(1000, 1500)}}, k);
        if (HasFatalFailure()) return;
    }
}

// So many pieces that most have none of the nearest rows, and queries of many lengths in more chunks than one.
TEST_P(CertainRows, ComeFromManyPieces)
{
    if (GetParam().dimensions > 64) GTEST_SKIP() << "takes long to build";
    load_random(60000);
    const std::vector<std::uint32_t> order = shuffled();
    const RowList all(order);
    for (const std::uint32_t k : {1U, 10U, 300U}) {
        expect_nearest({{all}}, k);
        expect_nearest({{all.first(30000), all.first(64 * 40), all.subspan(500, 100)}}, k);
        if (HasFatalFailure()) return;
    }
    kill_some();
    expect_nearest({{all, all.subspan(1, 50000), all}}, 10);
}

TEST_P(CertainRows, AreThoseThatPass)
{
    load_random(4000);
    expect_passing();
    EXPECT_FALSE(dynamic_cast<const TestsAllRows&>(*searcher_).tests_all_rows(513));
}

// Pieces, words of the bitmap of dead rows, and warps are full, or nearly so.
TEST_P(CertainRows, AreThoseThatPassOfAnyNumber)
{
    if (GetParam().dimensions > 200) GTEST_SKIP() << "takes long to build";
    for (const std::size_t count : {1, 31, 32, 33, 64, 65, 1023, 1024, 1025, 2049}) {
        dead_.clear();
        load_random(count);
        expect_passing();
        if (HasFatalFailure()) FAIL() << count << " rows";
    }
}

INSTANTIATE_TEST_SUITE_P(Exact, CertainRows,
                         testing::Values(Case{Method::exact, Metric::l2, 0, 1}, Case{Method::exact, Metric::l2, 0, 128},
                                         Case{Method::exact, Metric::l2, 0, 16000},
                                         Case{Method::exact, Metric::inner_product, 0, 20},
                                         Case{Method::exact, Metric::cosine, 0, 12},
                                         Case{Method::exact, Metric::l1, 0, 7}));
INSTANTIATE_TEST_SUITE_P(
    Graph, CertainRows,
    testing::Values(Case{Method::graph, Metric::l2, 0, 16}, Case{Method::graph, Metric::l2, 1, 3},
                    Case{Method::graph, Metric::l2, 1, 128}, Case{Method::graph, Metric::inner_product, 0, 31},
                    Case{Method::graph, Metric::inner_product, 1, 24}, Case{Method::graph, Metric::cosine, 0, 16},
                    Case{Method::graph, Metric::cosine, 1, 40}, Case{Method::graph, Metric::l1, 0, 10}));

}  // namespace
}  // namespace pgwarp::test
