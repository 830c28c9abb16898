// Searches with predicates of an index of each kind, on the CPU or on a device, and what they must find.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bag_fixture.h"
#include "filtered_fixture.h"
#include "list_fixture.h"
#include "part_fixture.h"
#include "protocol/rungs.h"
#include "text_fixture.h"

namespace pgwarp::test
{

inline constexpr std::size_t filtered_dimensions = 16;

inline OwnedRows vectors(std::size_t count, unsigned seed)
{
    const std::vector<float> rows = random_rows(count, filtered_dimensions, seed);
    return OwnedRows(dense_rows(rows.data(), count, filtered_dimensions));
}
inline OwnedRows sets(std::size_t count, unsigned seed)
{
    return random_sets(count, 12, 60, seed);
}
inline OwnedRows texts(std::size_t count, unsigned seed)
{
    return random_texts(count, 14, seed);
}
inline OwnedRows bags(std::size_t count, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<Bag> all(count);
    for (Bag& bag : all) bag = random_bag(random, 12, 80);
    return rows_of_parts(all);
}
inline OwnedRows sparse_vectors(std::size_t count, unsigned seed)
{
    return random_lists(count, 12, 80, true, seed);
}
inline OwnedRows bag_queries(std::size_t count, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::vector<BagOfWeights> all(count);
    for (BagOfWeights& query : all) {
        query.base = 1;
        for (std::size_t i = 0; i < 5; ++i) query.weights[random_term(random, 80)] = 1 + static_cast<double>(i);
    }
    return rows_of_parts(all);
}

struct FilteredKind {
    std::string name;
    Method method;
    ElementType element;
    Metric metric;
    OwnedRows (*make_rows)(std::size_t count, unsigned seed);
    ParameterList options = {};
    bool exact = true;  // the answer is that of a scan of all rows
    OwnedRows (*make_queries)(std::size_t count, unsigned seed) = nullptr;

    friend void PrintTo(const FilteredKind& kind, std::ostream* out) { *out << kind.name; }
};

inline std::vector<FilteredKind> filtered_kinds()
{
    return {
        FilteredKind{"exact", Method::exact, ElementType::float32, Metric::l2, vectors},
        FilteredKind{"exact_product", Method::exact, ElementType::float32, Metric::inner_product, vectors},
        FilteredKind{"exact_l1", Method::exact, ElementType::float32, Metric::l1, vectors},
        FilteredKind{"exact_halves", Method::exact, ElementType::float16, Metric::l2, vectors, {}, false},
        FilteredKind{"exact_bits", Method::exact, ElementType::bit, Metric::hamming, vectors},
        FilteredKind{"exact_sparse", Method::exact, ElementType::sparse, Metric::l2, sparse_vectors},
        FilteredKind{"graph", Method::graph, ElementType::float32, Metric::l2, vectors, {}, false},
        FilteredKind{"graph_bits", Method::graph, ElementType::bit, Metric::hamming, vectors, {}, false},
        FilteredKind{"graph_of_bits", Method::graph, ElementType::float32, Metric::l2, vectors,
                     make_list({{"vectors", 2}}), false},
        FilteredKind{"ivfadc", Method::ivfadc, ElementType::float32, Metric::l2, vectors, make_list({{"lists", 60}}),
                     false},
        FilteredKind{"ivfadc_codes", Method::ivfadc, ElementType::float32, Metric::l2, vectors,
                     make_list({{"lists", 60}, {"refine", 0}}), false},
        FilteredKind{"pqtree", Method::pqtree, ElementType::float32, Metric::l2, vectors, {}, false},
        FilteredKind{"sets", Method::matchcount, ElementType::set, Metric::overlap, sets},
        FilteredKind{"minhash", Method::matchcount, ElementType::minhash_set, Metric::set_jaccard, sets, {}, false},
        FilteredKind{"hashes", Method::matchcount, ElementType::float32, Metric::l2, vectors, {}, false},
        FilteredKind{"texts", Method::matchcount, ElementType::text, Metric::edit, texts},
        FilteredKind{"bags", Method::matchcount, ElementType::bag, Metric::bm25, bags, {}, true, bag_queries},
        FilteredKind{"sparse", Method::matchcount, ElementType::sparse, Metric::l2, sparse_vectors},
        FilteredKind{"sparse_product", Method::matchcount, ElementType::sparse, Metric::inner_product, sparse_vectors}};
}

inline std::string name_of_kind(const testing::TestParamInfo<FilteredKind>& info)
{
    return info.param.name;
}

class FilteredSearchTest : public testing::TestWithParam<FilteredKind>
{
protected:
    static constexpr std::size_t indexed = 4000;
    static constexpr std::uint32_t columns = 4;
    static constexpr std::uint64_t values = 3000;

    static std::unique_ptr<Filtered> make(std::size_t fresh, const MethodFactory* device = nullptr)
    {
        const FilteredKind& kind = GetParam();
        const OwnedRows rows = kind.make_rows(indexed + fresh, 1);
        const IndexShape shape =
            shape_with_attributes(kind.method, kind.element, kind.metric, rows.view().width, columns);
        return std::make_unique<Filtered>(shape, rows.view(), random_attributes(indexed + fresh, columns, values, 2),
                                          indexed, kind.options, device);
    }
    static OwnedRows queries(std::size_t count)
    {
        const FilteredKind& kind = GetParam();
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
                const std::size_t row = row_of(answer.results[at].tid);
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

    // Every third row, of the delta too.
    static void kill_thirds(Filtered& index)
    {
        std::set<std::size_t> dead;
        for (std::size_t row = 0; row < index.rows(); row += 3) dead.insert(row);
        index.kill(dead, 2);
    }

    // With delta rows, in parts or not, and dead rows. device: null for the CPU.
    static void expect_what_passes(const MethodFactory* device)
    {
        for (const std::size_t parts : {0, 1, 3}) {
            const auto index = make(parts == 0 ? 0 : 700, device);
            if (parts > 0) index->append(parts);
            for (const bool with_dead : {false, true}) {
                if (with_dead) kill_thirds(*index);
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
    static void expect_every_pass_rate(const MethodFactory* device)
    {
        const auto index = make(200, device);
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
    // Each query's answer is that of its search alone, whatever the others of its batch ask for: ways differ by the
    // number of queries that share a predicate.
    static void expect_same_in_every_batch(const MethodFactory* device)
    {
        constexpr std::size_t count = 16;
        const auto index = make(200, device);
        index->append();
        std::set<std::size_t> dead;
        for (std::size_t row = 0; row < index->rows(); row += 5) dead.insert(row);
        index->kill(dead, 2);
        const OwnedRows asked = queries(count);
        std::vector<std::vector<Predicate>> batches{predicates(count, 3)};
        for (const std::uint64_t below : {20, 300, 1500, 2900})
            batches.emplace_back(count, Predicate().where(0, 0, below).where(1, 3, 290));
        for (const std::uint32_t k : {1U, 10U, 60U}) {
            const SearchSettings settings = index->settings(k, k == 10 ? 12 : 0);
            for (const std::vector<Predicate>& batch : batches) {
                const SearchAnswer together = index->search(settings, asked.view(), batch);
                std::size_t at = 0;
                for (std::size_t q = 0; q < count; at += together.counts[q++]) {
                    const SearchAnswer alone = index->search(settings, asked.view().row(q), {batch[q]});
                    ASSERT_EQ(alone.counts[0], together.counts[q]) << "query " << q << ", k " << k;
                    for (std::size_t i = 0; i < alone.counts[0]; ++i) {
                        ASSERT_EQ(alone.places[i], together.places[at + i]) << "query " << q << " result " << i;
                        ASSERT_EQ(alone.results[i].distance, together.results[at + i].distance) << "query " << q;
                    }
                }
            }
        }
    }
    // Continuations offer each row that passes once, in one order.
    static void expect_every_row(const MethodFactory* device)
    {
        const auto index = make(150, device);
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
                const std::size_t row = row_of(result.tid);
                EXPECT_TRUE(index->lives(row, predicate));
                EXPECT_TRUE(seen.insert(row).second);
            }
            const SearchCursor next = cursor_behind(page.results, page.places, settings.after);
            EXPECT_TRUE(is_after(next.distance, next.ordinal, settings.after));
            settings.after = next;
        }
        EXPECT_EQ(seen.size(), all);
    }

    static SearchAnswer search_among(Filtered& index, SearchSettings settings, const RowView& queries,
                                     const Predicate& named, const std::vector<Predicate>& predicates = {})
    {
        settings.tids = index.tids_of(named);
        return index.search(settings, queries, predicates);
    }

    // Among the rows of a bitmap: as those of its predicate.
    static void expect_named(const MethodFactory* device)
    {
        for (const std::size_t parts : {0, 1, 3}) {
            const auto index = make(parts == 0 ? 0 : 700, device);
            if (parts > 0) index->append(parts);
            for (const bool with_dead : {false, true}) {
                if (with_dead) kill_thirds(*index);
                for (const std::uint64_t below : {1, 3, 30, 300, 1500, 2900, 3000}) {
                    const Predicate named = Predicate().where(0, 0, below - 1);
                    const OwnedRows asked = queries(6);
                    for (const std::uint32_t k : {1U, 10U, 100U}) {
                        const SearchAnswer answer =
                            search_among(*index, index->settings(k, k == 10 ? 12 : 0), asked.view(), named);
                        expect_right(*index, answer, asked.view(), std::vector<Predicate>(6, named), k);
                        if (HasFatalFailure()) return;
                    }
                }
            }
        }
    }
};

}  // namespace pgwarp::test
