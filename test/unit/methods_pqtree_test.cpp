// The pqtree method on the CPU against brute force in float64: answers, merges of rows, calibration, continuations,
// builds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "methods/pqtree/bin_choice.h"
#include "methods/pqtree/pqtree.h"
#include "methods/pqtree/proposer.h"
#include "methods_fixture.h"
#include "protocol/calibration.h"
#include "vector_index_checks.h"

namespace pgwarp::test::pqtree_test
{
namespace
{

struct Case {
    Metric metric;
    std::int64_t refine;
    std::int64_t parts;
    std::size_t dimensions;
    ElementType element = ElementType::float32;
};

class PqtreeAnswers : public testing::TestWithParam<Case>
{
protected:
    void make(std::size_t count)
    {
        const Case given = GetParam();
        rows = random_rows(count, given.dimensions, 1);
        queries = random_rows(50, given.dimensions, 1);
        if (given.metric == Metric::cosine) {
            normalise_rows(rows, given.dimensions);
            normalise_rows(queries, given.dimensions);
        }
        options = make_list({{"refine", given.refine}, {"parts", given.parts}});
    }
    ThreadPool pool{2};
    std::vector<float> rows;
    std::vector<float> queries;
    ParameterList options;
};

TEST_P(PqtreeAnswers, KeepTheirBounds)
{
    const auto [metric, refine, parts, dimensions, element] = GetParam();
    make(4000);
    const Index index(Method::pqtree, metric, dimensions, rows, options, pool, element);
    for (const std::int64_t effort : {100, 1000, 4000}) {
        const auto found = index.search(queries, 10, pool, {}, {}, effort);
        for (std::size_t q = 0; q < found.size(); ++q) {
            ASSERT_EQ(found[q].size(), 10U);
            ASSERT_NO_FATAL_FAILURE(
                expect_values_within_bounds(index, queries.data() + q * dimensions, rows, found[q]));
        }
    }
}

// With all rows as candidates the answer is the exact one of the stored rows.
TEST_P(PqtreeAnswers, AreCompleteWithFullEffort)
{
    const auto [metric, refine, parts, dimensions, element] = GetParam();
    make(3000);
    const Index index(Method::pqtree, metric, dimensions, rows, options, pool, element);
    const auto found = index.search(queries, 20, pool, {}, {}, 3000);
    const auto uncalibrated = index.search(queries, 20, pool);
    double total = 0;
    for (std::size_t q = 0; q < found.size(); ++q) {
        const float* query = queries.data() + q * dimensions;
        SearchBatch batch;
        batch.queries = std::span(query, dimensions);
        batch.count = 1;
        batch.k = 20;
        std::vector<RowResult> exact;
        index.searcher->search_exact(batch, -std::numeric_limits<double>::infinity(), 0, exact, pool);
        EXPECT_EQ(ids(found[q]), ids(exact));
        EXPECT_EQ(ids(uncalibrated[q]), ids(exact));
        total += recall(found[q], brute_force(metric, query, rows, dimensions, 20));
    }
    EXPECT_GE(total / static_cast<double>(found.size()), refine == 0 ? 0.2 : 0.99);
}

TEST_P(PqtreeAnswers, AreEncodedAlikeWhenAdded)
{
    const auto [metric, refine, parts, dimensions, element] = GetParam();
    make(2000);
    const Index index(Method::pqtree, metric, dimensions, rows, options, pool, element);
    expect_encoded_alike(index, rows, 500, 700, pool);
}

INSTANTIATE_TEST_SUITE_P(Pqtree, PqtreeAnswers,
                         testing::Values(Case{Metric::l2, 1, 0, 32}, Case{Metric::l2, 2, 1, 20},
                                         Case{Metric::l2, 0, 2, 33}, Case{Metric::l2, 2, 4, 48},
                                         Case{Metric::inner_product, 1, 0, 24}, Case{Metric::inner_product, 2, 3, 33},
                                         Case{Metric::cosine, 1, 0, 48}, Case{Metric::cosine, 2, 2, 24},
                                         Case{Metric::cosine, 0, 0, 32}));

TEST(Pqtree, RefusesContradictions)
{
    const auto build = [](std::initializer_list<std::pair<const char*, std::int64_t>> options,
                          std::uint32_t dimensions = 16) {
        IndexShape shape{};
        shape.method = Method::pqtree;
        shape.metric = static_cast<std::uint8_t>(Metric::l2);
        shape.dimensions = dimensions;
        find_method(Method::pqtree)->make_builder(shape, make_list(options));
    };
    EXPECT_NO_THROW(build({{"parts", 2}, {"line_parts", 4}, {"k1", 16}, {"k2", 8}}));
    EXPECT_NO_THROW(build({{"line_parts", 3}}));
    EXPECT_THROW(build({{"parts", 2}, {"line_parts", 3}}), BadRequest);
    EXPECT_THROW(build({{"parts", 4}}, 3), BadRequest);
    EXPECT_THROW(build({{"parts", 5}}), BadRequest);
    EXPECT_THROW(build({{"k1", 1}}), BadRequest);
    EXPECT_THROW(build({{"k1", 256}, {"k2", 256}}), BadRequest);
    EXPECT_THROW(build({{"line_parts", 17}}), BadRequest);
}

// Bins take memory and time also where they are empty.
TEST(Pqtree, HasTwoBinsForFiveRowsAtMost)
{
    for (const std::size_t rows : {20000, 40000, 100000, 150000, 1000000, 3000000, 100000000}) {
        const auto bins = static_cast<double>(TreeOptions::resolve({}, rows, 128).tree(128).bins());
        EXPECT_LE(bins, 0.4 * static_cast<double>(rows)) << rows;
        EXPECT_GE(bins, 0.1 * static_cast<double>(rows)) << rows;
    }
}

// More leaves than rows would cost memory and time, and find nothing.
TEST(Pqtree, HasNoMoreLeavesThanRows)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(300, 12, 4);
    const Index index(Method::pqtree, Metric::l2, 12, rows, make_list({{"k1", 256}, {"k2", 128}}), pool);
    const ParameterList options = index.builder->effective_options();
    EXPECT_EQ(options.get("k1", 0), 256);
    EXPECT_EQ(options.get("k2", 0), 1);
    const Index small(Method::pqtree, Metric::l2, 12, {rows.begin(), rows.begin() + 50 * 12},
                      make_list({{"k1", 40}, {"k2", 9}, {"parts", 1}, {"line_parts", 4}}), pool);
    EXPECT_EQ(small.builder->effective_options().get("k1", 0), 40);
    EXPECT_EQ(small.builder->effective_options().get("k2", 0), 1);
    EXPECT_EQ(small.search({rows.begin(), rows.begin() + 12}, 1, pool)[0][0].row, 0U);
    // As many as asked for where there are rows.
    const Index large(Method::pqtree, Metric::l2, 12, random_rows(3000, 12, 5), make_list({{"k1", 50}, {"k2", 60}}),
                      pool);
    EXPECT_EQ(large.builder->effective_options().get("k2", 0), 60);
}

// Codes are held once: two bytes for each of 16 line parts, 14 for the place among the bins, and the tree and its
// lines.
TEST(Pqtree, HoldsCodesOnce)
{
    ThreadPool pool(2);
    constexpr std::size_t count = 20000;
    const Index index(Method::pqtree, Metric::l2, 16, random_rows(count, 16, 6),
                      make_list({{"refine", 0}, {"line_parts", 16}}), pool);
    EXPECT_LT(index.searcher->memory_bytes(), 56 * count);
}

// The planner is to take ivfadc where there are both.
TEST(Pqtree, CostsMoreThanIvfadc)
{
    for (const double rows : {1000.0, 100000.0, 1000000.0, 100000000.0}) {
        const auto cost = [&](const MethodDescription& method, std::int64_t candidates) {
            SearchCostInput input{};
            input.rows = rows;
            if (candidates > 0) input.settings.set("candidates", candidates);
            return method.compared_rows(input);
        };
        EXPECT_GT(cost(pqtree_description, 0), cost(ivfadc_description, 0)) << rows;
        EXPECT_LT(cost(pqtree_description, 0), rows) << rows;
        EXPECT_LT(cost(pqtree_description, 1), cost(pqtree_description, 200)) << rows;
    }
}

TEST(Pqtree, AnswersSmallAndDegenerateTables)
{
    ThreadPool pool(2);
    for (const std::size_t dimensions : {1, 2, 3, 7}) {
        for (const std::size_t count : {0, 1, 2, 3, 100}) {
            for (const std::int64_t refine : {0, 1, 2}) {
                std::vector<float> rows = random_rows(count, dimensions, 3);
                if (count == 100) std::fill(rows.begin(), rows.end(), 1.5F);
                const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"refine", refine}}), pool);
                const std::vector<float> query(dimensions, 0.5F);
                EXPECT_EQ(index.search(query, 5, pool)[0].size(), std::min<std::size_t>(5, count));
                EXPECT_EQ(index.search(query, 5, pool, {}, {}, 1)[0].size(), std::min<std::size_t>(5, count));
            }
        }
    }
}

// Huge values overflow scores, not answers; a query may lie far from all rows.
TEST(Pqtree, TakesHugeRowsAndFarQueries)
{
    ThreadPool pool(2);
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        for (const float spread : {1e18F, 1e-20F, 1e37F}) {
            const std::vector<float> rows = random_rows(600, 12, 3, spread);
            const Index index(Method::pqtree, metric, 12, rows, make_list({{"refine", 2}}), pool);
            for (const float away : {1.0F, 30.0F}) {
                std::vector<float> query(rows.begin(), rows.begin() + 12);
                for (float& value : query) value *= spread > 1e30F ? 1 : away;
                for (const std::int64_t effort : {50, 600})
                    EXPECT_EQ(index.search(query, 10, pool, {}, {}, effort)[0].size(), 10U);
            }
        }
    }
}

// Single precision does not hold the distance of two rows, and the lines between the others are short beside it.
TEST(Pqtree, TakesRowsAtBothEnds)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_rows(1000, 17, 3);
    std::fill_n(rows.end() - 34, 17, 3.4e38F);
    std::fill_n(rows.end() - 17, 17, -3.4e38F);
    for (const std::int64_t refine : {0, 1, 2}) {
        const Index index(Method::pqtree, Metric::l2, 17, rows, make_list({{"refine", refine}}), pool);
        const std::vector<float> query(rows.begin(), rows.begin() + 17);
        EXPECT_EQ(index.search(query, 10, pool)[0].size(), 10U) << refine;
    }
}

TEST(Pqtree, LeavesDeadRowsOutAndStillFindsK)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(5000, 16, 3);
    const std::vector<float> queries = random_rows(20, 16, 3);
    const Index index(Method::pqtree, Metric::l2, 16, rows, make_list({{"refine", 2}}), pool);
    for (const std::size_t kept : {2, 50, 2500}) {
        std::vector<std::uint64_t> dead((5000 + 63) / 64, 0);
        for (std::size_t i = 0; i < 5000; ++i)
            if (i % (5000 / kept) != 0) dead[i / 64] |= std::uint64_t{1} << (i % 64);
        for (const auto& width : {0, 1}) {
            const auto found = index.search(queries, 10, pool, make_list({{"width", width}}), dead, 100);
            for (std::size_t q = 0; q < 20; ++q) {
                const auto wanted = brute_force(Metric::l2, queries.data() + q * 16, rows, 16, 10, dead);
                ASSERT_EQ(found[q].size(), wanted.size());
                for (const RowResult& result : found[q]) EXPECT_FALSE(bit_is_set(dead, result.row));
                if (kept <= 50) {
                    EXPECT_EQ(ids(found[q]), ids(wanted));
                }
            }
        }
    }
}

TEST(Pqtree, ContinuationsOfferEveryRowOnceInOrder)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(700, 12, 3);
    for (const std::int64_t refine : {0, 1, 2}) {
        const Index index(Method::pqtree, Metric::cosine, 12, rows, make_list({{"refine", refine}}), pool);
        expect_every_row_once(index, std::span(rows).first(12), 700, pool);
    }
}

TEST(Pqtree, BuildsAndFindsTheSameOnAnyNumberOfThreads)
{
    expect_same_on_any_threads(Method::pqtree, random_rows(20000, 24, 8), 24, {});
}

TEST(Pqtree, StopsWhenCancelled)
{
    expect_stops_when_cancelled(Method::pqtree);
}

// Arrays that are cut short, or hold numbers that do not fit, are refused.
TEST(Pqtree, RefusesArraysThatDoNotFit)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(500, 16, 8);
    const Index index(Method::pqtree, Metric::l2, 16, rows, {}, pool);
    const ParameterList options = index.builder->effective_options();
    const std::vector<ArrayShape> arrays = index.builder->arrays();
    for (std::size_t left_out = 0; left_out < arrays.size(); ++left_out) {
        std::vector<ArrayShape> others = arrays;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
        if (std::strcmp(arrays[left_out].name, "codes") == 0) continue;  // without it an index has no rows
        EXPECT_THROW(find_method(Method::pqtree)->make_searcher(index.shape, options, others), BadRequest);
    }
    for (const char* spoilt : {"level1", "line_ends", "line_places", "codes", "half_scale"}) {
        const auto searcher = find_method(Method::pqtree)->make_searcher(index.shape, options, arrays);
        for (const ArrayShape& array : arrays) {
            std::vector<std::byte> bytes = index.contents(array);
            if (std::strcmp(array.name, spoilt) == 0) std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
            searcher->write(array.name, 0, bytes);
            EXPECT_THROW(searcher->write(array.name, array.bytes() - 1, std::span(bytes).first(2)), BadRequest);
        }
        EXPECT_THROW(searcher->finish_load(pool), BadRequest) << spoilt;
    }
    EXPECT_THROW(index.builder->read("nothing", 0, {}), BadRequest);
}

// Recall measured anew, by the stored rows, is about that of the build; dead rows count neither as queries nor as
// neighbours.
TEST(Pqtree, IsCalibratedAnew)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(6000, 24, 8);
    for (const std::int64_t refine : {1, 2}) {
        const Index index(Method::pqtree, Metric::l2, 24, rows, make_list({{"refine", refine}}), pool);
        const char* kept = refine == 1 ? "half" : "vectors";
        const Calibration built = index.builder->calibration();
        for (const bool with_dead : {false, true}) {
            const auto calibrator =
                find_method(Method::pqtree)->make_calibrator(index.shape, index.builder->effective_options());
            const auto give = [&](const ArrayShape& shape, std::span<const std::byte> bytes) {
                for (std::size_t offset = 0; offset < bytes.size(); offset += 1001)
                    calibrator->give(shape, offset,
                                     bytes.subspan(offset, std::min<std::size_t>(1001, bytes.size() - offset)));
            };
            std::vector<std::uint64_t> dead(with_dead ? (6000 + 63) / 64 : 0, 0x5555555555555555);
            if (with_dead)
                give(make_array_shape(array_calib_dead, ArrayType::u64, dead.size(), 1),
                     std::as_bytes(std::span(dead)));
            for (const ArrayShape& array : index.builder->arrays()) {
                const std::vector<std::byte> bytes = index.contents(array);
                if (std::strcmp(array.name, kept) != 0) {
                    give(array, bytes);
                    continue;
                }
                std::vector<std::uint32_t> sample;
                std::vector<std::byte> queries;
                const std::size_t width = bytes.size() / 6000;
                for (std::uint32_t row = 7; row < 6000; row += 20) {
                    sample.push_back(row);
                    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(row * width);
                    queries.insert(queries.end(), from, from + static_cast<std::ptrdiff_t>(width));
                }
                give(make_array_shape(array_calib_row, ArrayType::u32, sample.size(), 1),
                     std::as_bytes(std::span(sample)));
                give(make_array_shape(array_calib_query, ArrayType::u8, sample.size(), width), queries);
                give(array, bytes);
            }
            RowBuffer none(24);
            calibrator->run(none, {[](const char*, std::uint64_t, std::uint64_t) {}, nullptr}, pool);
            const Calibration anew = calibrator->calibration();
            ASSERT_GT(anew.count, 5U);
            for (std::uint32_t i = 0; i + 1 < std::min(anew.count, built.count); ++i) {
                ASSERT_EQ(anew.points[i].effort, built.points[i].effort);
                // With half of the rows gone, as many candidates hold more of the neighbours.
                if (with_dead) {
                    EXPECT_GE(anew.points[i].recall[1], built.points[i].recall[1] - 0.05);
                } else {
                    EXPECT_NEAR(anew.points[i].recall[1], built.points[i].recall[1], 0.06);
                }
            }
        }
    }
}

// The proposals of parts come in order, and are as many as asked for.
TEST(Pqtree, Proposes)
{
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(5000, 16, 8);
    const Index index(Method::pqtree, Metric::l2, 16, rows, {}, pool);
    SearchBatch batch;
    batch.queries = std::span(rows).first(16 * 5);
    batch.count = 5;
    batch.k = 30;
    batch.effort = 300;
    batch.proposals_will_do = true;
    std::vector<std::vector<RowResult>> results;
    index.searcher->search(batch, results, pool);
    for (const auto& result : results) {
        ASSERT_EQ(result.size(), 30U);
        for (std::size_t i = 1; i < 30; ++i) EXPECT_LE(result[i - 1].distance, result[i].distance);
    }
}

// A search visits a few bins for each row of the index, however many bins there are: where its candidates lie in more
// of them, all live rows are candidates.
TEST(Pqtree, VisitsBinsInProportionToTheRows)
{
    constexpr std::size_t dimensions = 16;
    constexpr std::size_t count = 3000;
    ThreadPool pool(2);
    const std::vector<float> rows = random_rows(count, dimensions, 12);
    const std::vector<float> queries = random_rows(10, dimensions, 13);
    const Index index(Method::pqtree, Metric::l2, dimensions, rows, make_list({{"parts", 4}, {"k1", 64}, {"k2", 2}}),
                      pool);
    TreeArrays arrays;
    arrays.options = TreeOptions::resolve(index.builder->effective_options(), count, dimensions);
    ASSERT_GE(arrays.options.tree(dimensions).bins(), std::uint64_t{1} << 28);
    arrays.dimensions = dimensions;
    arrays.make_quantizer_room();
    std::vector<std::byte> codes;
    for (const ArrayShape& array : index.builder->arrays()) {
        const std::vector<std::byte> bytes = index.contents(array);
        if (std::string(array.name) == array_tree_codes) codes = bytes;
        arrays.write_quantizer(array.name, 0, bytes);
    }
    const auto proposer = make_cpu_proposer(Metric::l2, arrays.options, arrays.tree, arrays.lines,
                                            {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()}, pool);
    std::vector<std::uint64_t> dead((count + 63) / 64, 0xaaaaaaaaaaaaaaaaULL);
    for (const std::size_t candidates : {50, 1000, 1400, 1600, 2900}) {
        const std::uint64_t before = proposer->bins_visited();
        const SearchPlan plan{.width = 64, .candidates = candidates, .ranked = count};
        std::vector<std::vector<Candidate>> proposed;
        proposer->propose(queries, plan, dead, proposed, pool, nullptr);
        // Two bins a row at last, and before that ever more.
        EXPECT_LE(proposer->bins_visited() - before, 10 * 8 * count) << candidates;
        for (const auto& one : proposed) EXPECT_GE(one.size(), std::min<std::size_t>(candidates, count / 2));
    }
    // Rows of other bins in the slots of the bins that are visited are no candidates: few of them would be near.
    std::size_t found = 0;
    std::vector<std::vector<Candidate>> proposed;
    proposer->propose(queries, {.width = 64, .candidates = 50, .ranked = count}, {}, proposed, pool, nullptr);
    for (std::size_t q = 0; q < proposed.size(); ++q) {
        const auto distance = [&](std::size_t row) {
            return canonical_l2_squared(queries.data() + q * dimensions, rows.data() + row * dimensions, dimensions);
        };
        std::size_t nearest = 0;
        for (std::size_t row = 1; row < count; ++row)
            if (distance(row) < distance(nearest)) nearest = row;
        found += std::ranges::count(proposed[q], nearest, &Candidate::row);
    }
    EXPECT_GE(found, 8U);

    // Also while it visits bins a search may be cancelled.
    const BinLists lists(arrays.options.tree(dimensions),
                         {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                         arrays.options.code_bytes(), pool);
    LeafKeys leaves(4);
    for (auto& part : leaves) {
        for (std::uint32_t leaf = 0; leaf < 128; ++leaf) part.push_back(ordered_key(static_cast<float>(leaf), leaf));
    }
    BinChoice choice;
    BinStatistics statistics;
    CancelToken cancel;
    std::vector<std::uint32_t> positions;
    cancel.cancel();
    EXPECT_THROW(choice.run(lists, 128, leaves, 100, {}, &cancel, statistics, positions), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test::pqtree_test
