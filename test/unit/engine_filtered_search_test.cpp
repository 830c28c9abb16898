// Searches with predicates of every method: only rows that pass, all that are wanted, in order; exact ones as a scan of
// all rows finds them. With delta rows, in parts or not, dead rows, rungs and continuations.
#include <gtest/gtest.h>

#include <random>

#include "bag_fixture.h"
#include "filtered_fixture.h"
#include "forwarding_searcher.h"
#include "part_fixture.h"
#include "protocol/rungs.h"
#include "text_fixture.h"

namespace pgwarp
{
namespace
{

using namespace test;

constexpr std::size_t dimensions = 16;
constexpr std::uint32_t columns = 4;
constexpr std::uint64_t values = 3000;

OwnedRows vectors(std::size_t count, unsigned seed)
{
    const std::vector<float> rows = random_rows(count, dimensions, seed);
    return OwnedRows(dense_rows(rows.data(), count, dimensions));
}
OwnedRows sets(std::size_t count, unsigned seed)
{
    return random_sets(count, 12, 60, seed);
}
OwnedRows texts(std::size_t count, unsigned seed)
{
    return random_texts(count, 14, seed);
}
OwnedRows bags(std::size_t count, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Bag> all(count);
    for (Bag& bag : all) bag = random_bag(random, 12, 80);
    return rows_of_parts(all);
}
OwnedRows bag_queries(std::size_t count, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<BagOfWeights> all(count);
    for (BagOfWeights& query : all) {
        query.base = 1;
        for (std::size_t i = 0; i < 5; ++i) query.weights[random_term(random, 80)] = 1 + static_cast<double>(i);
    }
    return rows_of_parts(all);
}

struct Kind {
    std::string name;
    Method method;
    ElementType element;
    Metric metric;
    OwnedRows (*make_rows)(std::size_t count, unsigned seed);
    ParameterList options = {};
    bool exact = true;  // the answer is that of a scan of all rows
    OwnedRows (*make_queries)(std::size_t count, unsigned seed) = nullptr;

    friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class FilteredSearches : public testing::TestWithParam<Kind>
{
protected:
    static constexpr std::size_t indexed = 4000;

    static std::unique_ptr<Filtered> make(std::size_t fresh, const MethodFactory* device = nullptr)
    {
        const Kind& kind = GetParam();
        const OwnedRows rows = kind.make_rows(indexed + fresh, 1);
        const IndexShape shape =
            shape_with_attributes(kind.method, kind.element, kind.metric, rows.view().width, columns);
        return std::make_unique<Filtered>(shape, rows.view(), random_attributes(indexed + fresh, columns, values, 2),
                                          indexed, kind.options, device);
    }
    static OwnedRows queries(std::size_t count)
    {
        const Kind& kind = GetParam();
        return kind.make_queries != nullptr ? kind.make_queries(count, 9) : kind.make_rows(count, 9);
    }

    static std::vector<Predicate> predicates(std::size_t count, unsigned seed)
    {
        std::mt19937_64 random(seed);
        std::vector<Predicate> all;
        while (all.size() < count) {
            // Some queries share a predicate.
            const bool again = !all.empty() && random() % 3 == 0;
            all.push_back(again ? all[random() % all.size()] : random_predicate(random, columns, values));
        }
        return all;
    }

    // Every result passes, lives and comes once, in order, and there are as many as there can be.
    static void expect_right(const Filtered& index, const SearchAnswer& answer, const RowView& queries,
                             const std::vector<Predicate>& predicates, std::size_t k)
    {
        ASSERT_EQ(answer.counts.size(), queries.count);
        ASSERT_EQ(answer.filtered.size(), queries.count);
        std::size_t at = 0;
        for (std::size_t q = 0; q < queries.count; ++q) {
            const Predicate& predicate = predicates[q];
            const std::size_t wanted = std::min(k, index.count(predicate));
            ASSERT_EQ(answer.counts[q], wanted) << "query " << q;
            std::set<std::size_t> seen;
            const auto truth = GetParam().exact ? index.truth(queries.row(q), k, predicate)
                                                : std::vector<std::pair<double, std::size_t>>();
            for (std::size_t i = 0; i < answer.counts[q]; ++i, ++at) {
                const std::size_t row = Filtered::row_of(answer.results[at].tid);
                ASSERT_TRUE(index.lives(row, predicate)) << "row " << row;
                ASSERT_TRUE(seen.insert(row).second);
                ASSERT_EQ(answer.places[at], index.place_of(row));
                if (i > 0 && index.mirror->searcher().values_are_distances()) {
                    ASSERT_LE(answer.results[at - 1].distance, answer.results[at].distance);
                }
                if (truth.empty()) continue;
                ASSERT_EQ(answer.results[at].distance, truth[i].first) << "query " << q << " result " << i;
                ASSERT_EQ(row, truth[i].second) << "query " << q << " result " << i;
            }
            const FilterOutcome& outcome = answer.filtered[q];
            EXPECT_NE(static_cast<int>(outcome.ways), 0);
            const bool is_exact = predicate.words()[0] <= 1 || outcome.ways == FilterWays::compared;
            if (is_exact) {
                EXPECT_EQ(outcome.passing_rows, index.count(predicate, true));
            }
        }
    }
};

TEST_P(FilteredSearches, FindWhatPasses)
{
    for (const std::size_t parts : {0, 1, 3}) {
        const auto index = make(parts == 0 ? 0 : 700);
        if (parts > 0) index->append(parts);
        for (const bool with_dead : {false, true}) {
            if (with_dead) {
                std::set<std::size_t> dead;
                for (std::size_t row = 0; row < index->rows(); row += 3) dead.insert(row);
                index->kill(dead, 2);
            }
            for (const std::uint32_t k : {1U, 10U, 100U}) {
                const OwnedRows asked = queries(24);
                const auto wanted = predicates(24, k + (with_dead ? 7 : 0));
                const SearchAnswer answer = index->search(index->settings(k), asked.view(), wanted);
                expect_right(*index, answer, asked.view(), wanted, k);
                if (HasFatalFailure()) return;
            }
        }
    }
}

// With an effort of its own, such as a calibration gives, for few rows that pass and for many.
TEST_P(FilteredSearches, HoldForEveryPassRate)
{
    const auto index = make(200);
    index->append();
    const OwnedRows asked = queries(12);
    for (const std::uint64_t below : {1, 3, 30, 300, 1000, 2000, 2900, 3000}) {
        const std::vector<Predicate> wanted(12, Predicate().where(0, 0, below - 1));
        for (const std::int64_t effort : {std::int64_t{0}, std::int64_t{1}, std::int64_t{12}, std::int64_t{200}}) {
            const SearchAnswer answer = index->search(index->settings(10, effort), asked.view(), wanted);
            expect_right(*index, answer, asked.view(), wanted, 10);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(FilteredSearches, ShareBatchesWithQueriesWithoutPredicates)
{
    const auto index = make(100);
    index->append();
    const OwnedRows asked = queries(8);
    QueryPredicates of_queries;
    const Predicate half = Predicate().where(0, 0, values / 2);
    for (std::size_t q = 0; q < 8; ++q)
        q % 2 == 0 ? of_queries.append(half) : of_queries.append(std::span<const std::uint64_t>());
    SearchAnswer mixed;
    run_search(index->settings(10, 40), {asked.view(), &of_queries}, nullptr, index->pool, mixed);
    const SearchAnswer with = index->search(index->settings(10, 40), asked.view(), std::vector<Predicate>(8, half));
    SearchAnswer without;
    run_search(index->settings(10, 40), asked.view(), nullptr, index->pool, without);
    EXPECT_TRUE(without.filtered.empty());
    std::size_t at[2] = {0, 0};
    std::size_t mixed_at = 0;
    for (std::size_t q = 0; q < 8; ++q) {
        const SearchAnswer& same = q % 2 == 0 ? with : without;
        ASSERT_EQ(mixed.counts[q], same.counts[q]);
        EXPECT_EQ(mixed.filtered[q].ways == FilterWays::none, q % 2 == 1);
        for (std::size_t i = 0; i < mixed.counts[q]; ++i)
            EXPECT_EQ(mixed.places[mixed_at + i], same.places[at[q % 2] + i]) << q;
        mixed_at += mixed.counts[q];
        at[0] += with.counts[q];
        at[1] += without.counts[q];
    }
}

// Continuations offer each row that passes once, in one order.
TEST_P(FilteredSearches, GoOnToTheLastRow)
{
    const auto index = make(150);
    index->append();
    index->kill({1, 5, 9, indexed + 3}, 2);
    const OwnedRows asked = queries(1);
    const Predicate predicate = Predicate().where(0, 100, 700).where(2, 0, 15);
    const std::size_t all = index->count(predicate);
    ASSERT_GT(all, 100U);
    SearchSettings settings = index->settings(37);
    settings.mode = SearchMode::continuation;
    settings.after = {-HUGE_VAL, 0};
    std::set<std::size_t> seen;
    while (true) {
        const SearchAnswer page = index->search(settings, asked.view(), {predicate});
        if (page.counts[0] == 0) break;
        for (const Result& result : page.results) {
            const std::size_t row = Filtered::row_of(result.tid);
            EXPECT_TRUE(index->lives(row, predicate));
            EXPECT_TRUE(seen.insert(row).second);
        }
        const SearchCursor next = cursor_behind(page.results, page.places, settings.after);
        EXPECT_TRUE(is_after(next.distance, next.ordinal, settings.after));
        settings.after = next;
    }
    EXPECT_EQ(seen.size(), all);
}

// The rows of the first rung are those of its search alone, whatever rungs follow.
TEST_P(FilteredSearches, HaveOneSequenceForEveryLimit)
{
    const auto index = make(150);
    index->append();
    const OwnedRows asked = queries(6);
    for (const std::uint64_t last : {40, 400, 1500, 2999}) {
        const std::vector<Predicate> wanted(6, Predicate().where(0, 0, last));
        SearchSettings deep = index->settings(100, 2000);
        deep.earlier_count = 1;
        deep.earlier[0] = {400, 10, 0};
        const SearchAnswer all = index->search(deep, asked.view(), wanted);
        const SearchAnswer first = index->search(index->settings(10, 400), asked.view(), wanted);
        std::size_t all_at = 0;
        std::size_t first_at = 0;
        for (std::size_t q = 0; q < 6; ++q) {
            ASSERT_LE(first.counts[q], all.counts[q]);
            EXPECT_GE(all.counts[q], std::min<std::size_t>(95, index->count(wanted[q])));
            for (std::size_t i = 0; i < first.counts[q]; ++i)
                EXPECT_EQ(first.places[first_at + i], all.places[all_at + i]) << q << " " << i;
            all_at += all.counts[q];
            first_at += first.counts[q];
        }
    }
}

// An index that has delta rows alone, and one whose rows have no attributes.
TEST(FilteredSearch, OfAnEmptyIndexOrOneWithoutAttributes)
{
    const OwnedRows rows = vectors(300, 1);
    const OwnedRows asked = vectors(3, 2);
    const IndexShape shape = shape_with_attributes(Method::graph, ElementType::float32, Metric::l2, dimensions, 2);
    Filtered fresh(shape, rows.view(), random_attributes(300, 2, 100, 3), 0);
    fresh.append();
    const Predicate predicate = Predicate().where(0, 0, 30);
    const SearchAnswer answer = fresh.search(fresh.settings(10), asked.view(), std::vector<Predicate>(3, predicate));
    std::size_t at = 0;
    for (std::size_t q = 0; q < 3; ++q)
        for (const auto& [distance, row] : fresh.truth(asked.view().row(q), 10, predicate))
            EXPECT_EQ(Filtered::row_of(answer.results[at++].tid), row);
    EXPECT_EQ(at, answer.results.size());
    EXPECT_EQ(answer.filtered[0].passing_rows, fresh.count(predicate));

    const IndexShape bare = shape_with_attributes(Method::graph, ElementType::float32, Metric::l2, dimensions, 0);
    Filtered all(bare, rows.view(), {}, 200);
    all.append();
    const SearchAnswer every = all.search(all.settings(10, 200), asked.view(), std::vector<Predicate>(3));
    EXPECT_EQ(every.counts, std::vector<std::uint32_t>(3, 10));
    EXPECT_EQ(every.filtered[0].passing_rows, 300U);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FilteredSearches,
    testing::Values(Kind{"exact", Method::exact, ElementType::float32, Metric::l2, vectors},
                    Kind{"exact_product", Method::exact, ElementType::float32, Metric::inner_product, vectors},
                    Kind{"exact_l1", Method::exact, ElementType::float32, Metric::l1, vectors},
                    Kind{"exact_halves", Method::exact, ElementType::float16, Metric::l2, vectors, {}, false},
                    Kind{"exact_bits", Method::exact, ElementType::bit, Metric::hamming, vectors},
                    Kind{"graph", Method::graph, ElementType::float32, Metric::l2, vectors, {}, false},
                    Kind{"graph_bits", Method::graph, ElementType::bit, Metric::hamming, vectors, {}, false},
                    Kind{"graph_of_bits", Method::graph, ElementType::float32, Metric::l2, vectors,
                         make_list({{"vectors", 2}}), false},
                    Kind{"ivfadc", Method::ivfadc, ElementType::float32, Metric::l2, vectors,
                         make_list({{"lists", 60}}), false},
                    Kind{"ivfadc_codes", Method::ivfadc, ElementType::float32, Metric::l2, vectors,
                         make_list({{"lists", 60}, {"refine", 0}}), false},
                    Kind{"pqtree", Method::pqtree, ElementType::float32, Metric::l2, vectors, {}, false},
                    Kind{"sets", Method::matchcount, ElementType::set, Metric::overlap, sets},
                    Kind{"minhash", Method::matchcount, ElementType::minhash_set, Metric::set_jaccard, sets, {}, false},
                    Kind{"hashes", Method::matchcount, ElementType::float32, Metric::l2, vectors, {}, false},
                    Kind{"texts", Method::matchcount, ElementType::text, Metric::edit, texts},
                    Kind{"bags", Method::matchcount, ElementType::bag, Metric::bm25, bags, {}, true, bag_queries}),
    [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace pgwarp
