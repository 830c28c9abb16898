// Builds of pqtree whose rows stream, beside builds of the same rows gathered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "methods/pqtree/pqtree.h"
#include "methods/recall/searches.h"
#include "methods/row_stream.h"
#include "methods_fixture.h"
#include "protocol/calibration.h"

namespace pgwarp::test::pqtree_stream_test
{
namespace
{

constexpr std::size_t dimensions = 40;
constexpr std::size_t count = 6000;

struct StreamCase {
    Metric metric;
    std::int64_t refine;
    ElementType element;
};

Tid tid_of(std::size_t row)
{
    return {static_cast<std::uint32_t>(row / 7), static_cast<std::uint16_t>(row % 7 + 1), 0};
}

// How rows come: the numbers of a sample, and all rows in chunks.
struct Arrival {
    std::vector<std::uint32_t> sample;
    std::vector<std::uint32_t> rows;
    std::size_t chunk;
    std::size_t threads = 1;
};

// Every third row is in the sample.
Arrival in_order(std::size_t rows, std::size_t chunk)
{
    Arrival arrival{{}, std::vector<std::uint32_t>(rows), chunk};
    std::iota(arrival.rows.begin(), arrival.rows.end(), 0U);
    for (std::uint32_t i = 0; i < rows; i += 3) arrival.sample.push_back(i);
    return arrival;
}

std::vector<Tid> tids_of(std::span<const std::uint32_t> rows)
{
    std::vector<Tid> tids;
    for (const std::uint32_t row : rows) tids.push_back(tid_of(row));
    return tids;
}

std::vector<float> gather(const std::vector<float>& all, std::span<const std::uint32_t> rows)
{
    std::vector<float> gathered;
    for (const std::uint32_t row : rows)
        gathered.insert(gathered.end(), all.begin() + row * dimensions, all.begin() + (row + 1) * dimensions);
    return gathered;
}

// An index whose rows streamed.
struct StreamedIndex {
    IndexShape shape;
    std::unique_ptr<Builder> builder;
    std::unique_ptr<Searcher> searcher;

    StreamedIndex(const StreamCase& given, const std::vector<float>& all, const Arrival& arrival)
        : shape(Index::shape_of(Method::pqtree, given.metric, dimensions, given.element)),
          builder(find_method(Method::pqtree)->make_builder(shape, make_list({{"refine", given.refine}})))
    {
        ThreadPool pool(arrival.threads);
        const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, nullptr};
        RowStream& stream = *builder->row_stream();
        RowBuffer sample(dimensions);
        sample.append(tids_of(arrival.sample), gather(all, arrival.sample));
        stream.train(sample, arrival.rows.size(), progress, pool);
        for (std::size_t first = 0; first < arrival.rows.size(); first += arrival.chunk) {
            const auto some =
                std::span(arrival.rows).subspan(first, std::min(arrival.chunk, arrival.rows.size() - first));
            std::vector<float> rows = gather(all, some);
            stream.append(first, tids_of(some), rows, nullptr, pool);
        }
        std::vector<std::uint32_t> order(arrival.rows.size());
        std::iota(order.begin(), order.end(), 0U);
        std::ranges::sort(order, {}, [&](std::uint32_t number) { return arrival.rows[number]; });
        stream.finish(order, progress, pool);
        searcher = find_method(Method::pqtree)->make_searcher(shape, builder->effective_options(), builder->arrays());
        feed_searcher(*builder, *searcher, pool);
    }

    std::vector<std::byte> contents() const
    {
        std::vector<std::byte> all;
        for (const ArrayShape& array : builder->arrays()) {
            const std::size_t begin = all.size();
            all.resize(begin + array.bytes());
            builder->read(array.name, 0, std::span(all).subspan(begin));
        }
        return all;
    }

    std::vector<std::vector<RowResult>> search(const std::vector<float>& queries, std::uint32_t k,
                                               std::int64_t effort) const
    {
        ThreadPool pool(2);
        SearchBatch batch;
        batch.queries = queries;
        batch.count = queries.size() / dimensions;
        batch.k = k;
        batch.effort = effort;
        std::vector<std::vector<RowResult>> results;
        searcher->search(batch, results, pool);
        return results;
    }
};

std::vector<float> rows_for(const StreamCase& given, std::size_t rows, unsigned seed)
{
    std::vector<float> all = random_rows(rows, dimensions, seed);
    if (given.element == ElementType::float16) {
        for (float& value : all) value = std::round(value * 16) / 16;
    }
    if (given.metric == Metric::cosine) normalise_rows(all, dimensions);
    return all;
}

class PqtreeStream : public testing::TestWithParam<StreamCase>
{
};

TEST_P(PqtreeStream, DependsOnNoOrder)
{
    std::vector<float> all = rows_for(GetParam(), count, 1);
    // Many rows that are equally far from a query: more than its list holds, and at the end of its list.
    for (std::size_t i = 0; i < 4000; ++i)
        std::copy_n(all.begin() + (i < 3500 ? 0 : i % 5) * dimensions, dimensions,
                    all.begin() + (1000 + i) * dimensions);
    const StreamedIndex whole(GetParam(), all, in_order(count, count));
    Arrival mixed = in_order(count, 333);
    std::shuffle(mixed.rows.begin(), mixed.rows.end(), std::mt19937(7));
    mixed.threads = 3;
    const StreamedIndex other(GetParam(), all, mixed);
    EXPECT_EQ(whole.contents(), other.contents());
    const Calibration curve = whole.builder->calibration();
    const Calibration again = other.builder->calibration();
    ASSERT_EQ(curve.count, again.count);
    EXPECT_GT(curve.sample, 100U);
    for (std::uint32_t i = 0; i < curve.count; ++i) {
        EXPECT_EQ(curve.points[i].effort, again.points[i].effort);
        for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(curve.points[i].recall[k], again.points[i].recall[k]);
    }
}

// Searches find as much as in an index of gathered rows, and as much as the calibration says.
TEST_P(PqtreeStream, AnswersAsWhenGathered)
{
    constexpr std::size_t asked = 600;
    const std::vector<float> all = rows_for(GetParam(), count + asked, 2);
    const std::vector<float> queries(all.begin(), all.begin() + asked * dimensions);
    const std::vector<float> rows(all.begin() + asked * dimensions, all.end());
    ThreadPool pool(2);
    const Index gathered(Method::pqtree, GetParam().metric, dimensions, rows,
                         make_list({{"refine", GetParam().refine}}), pool, GetParam().element);
    const StreamedIndex streamed(GetParam(), rows, in_order(count, 1000));
    EXPECT_EQ(streamed.builder->effective_options().get("k2", 0), gathered.builder->effective_options().get("k2", 1));
    const Calibration curve = streamed.builder->calibration();
    for (const double wanted : {0.9, 0.95, 0.99}) {
        const EffortChoice choice = choose_effort(curve, 10, wanted);
        // Line codes alone do not order all rows.
        ASSERT_TRUE(choice.reached || GetParam().refine == 0) << wanted;
        const std::uint32_t width = search_width({streamed.searcher->result_kind()}, 10);
        const auto found = streamed.search(queries, width, choice.effort);
        const auto beside = gathered.search(queries, width, pool, {}, {}, choice.effort);
        double recall_of_found = 0;
        double recall_beside = 0;
        for (std::size_t q = 0; q < asked; ++q) {
            const auto nearest = brute_force(GetParam().metric, queries.data() + q * dimensions, rows, dimensions, 10);
            recall_of_found += recall(found[q], nearest) / asked;
            recall_beside += recall(beside[q], nearest) / asked;
        }
        EXPECT_GE(recall_of_found, std::min<double>(wanted, choice.attained) - 0.015);
        EXPECT_NEAR(recall_of_found, recall_beside, 0.02);
    }
    // With all rows as candidates distances are those of the rows.
    if (GetParam().refine == 0) return;
    const auto exact = streamed.search(queries, 10, count);
    const auto nearest = brute_force(GetParam().metric, queries.data(), rows, dimensions, 1);
    EXPECT_EQ(exact[0][0].row, nearest[0].row);
    EXPECT_LE(exact[0][0].distance, nearest[0].distance);
    EXPECT_GE(exact[0][0].distance + streamed.searcher->bound_width(queries.data()), nearest[0].distance - 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Forms, PqtreeStream,
                         testing::Values(StreamCase{Metric::l2, 1, ElementType::float32},
                                         StreamCase{Metric::l2, 0, ElementType::float32},
                                         StreamCase{Metric::cosine, 1, ElementType::float32},
                                         StreamCase{Metric::inner_product, 0, ElementType::float32},
                                         StreamCase{Metric::l2, 1, ElementType::float16}));

constexpr StreamCase usual{Metric::l2, 1, ElementType::float32};

float half_error(const Builder& builder)
{
    float scale[2];
    builder.read(array_half_scale, 0, std::as_writable_bytes(std::span(scale)));
    return scale[1];
}

// A row that is much farther than all of the sample spoils no halves.
TEST(PqtreeStream, HalvesHaveRoomForFarRows)
{
    std::vector<float> rows = rows_for(usual, count, 3);
    const float usual_error = half_error(*StreamedIndex(usual, rows, in_order(count, 500)).builder);
    EXPECT_LT(usual_error, 0.02F);
    for (std::size_t d = 0; d < dimensions; ++d) rows[dimensions + d] = 1000;  // the second row is not in the sample
    const float error = half_error(*StreamedIndex(usual, rows, in_order(count, 500)).builder);
    EXPECT_LT(error, 1000.0F / 2048 * std::sqrt(static_cast<float>(dimensions)));
    EXPECT_GT(error, usual_error);
}

// Between the sample and the build rows may go.
TEST(PqtreeStream, SampledRowsMayNotCome)
{
    const std::vector<float> rows = rows_for(usual, count, 4);
    Arrival without = in_order(count, 777);
    std::erase_if(without.rows, [](std::uint32_t row) { return row % 2 == 0; });
    const StreamedIndex index(usual, rows, without);
    const Calibration curve = index.builder->calibration();
    EXPECT_GT(curve.sample, 30U);
    EXPECT_LT(curve.sample, 130U);
    EXPECT_EQ(curve.points[curve.count - 1].effort, static_cast<std::int64_t>(count / 2));
    const Arrival none{in_order(count, 1).sample, {}, 1};
    const StreamedIndex empty(usual, rows, none);
    EXPECT_EQ(empty.builder->calibration().count, 0U);
    EXPECT_TRUE(empty.search({rows.begin(), rows.begin() + dimensions}, 10, 100)[0].empty());
}

TEST(PqtreeStream, WantsASampleOfManyRowsAlone)
{
    const IndexShape shape = Index::shape_of(Method::pqtree, Metric::l2, 128, ElementType::float32);
    const auto wanted = [&](std::int64_t refine, std::uint64_t rows) {
        const auto builder = find_method(Method::pqtree)->make_builder(shape, make_list({{"refine", refine}}));
        return builder->row_stream()->wanted_sample(rows);
    };
    EXPECT_EQ(wanted(1, 0), 0U);
    EXPECT_EQ(wanted(1, 50000), 0U);
    EXPECT_EQ(wanted(2, 1000000), 0U);
    EXPECT_GT(wanted(1, 1000000), 20000U);
    EXPECT_LT(wanted(0, 1000000), 30000U);
}

TEST(PqtreeStream, MayBeCancelled)
{
    const std::vector<float> all = rows_for(usual, count, 5);
    const IndexShape shape = Index::shape_of(Method::pqtree, Metric::l2, dimensions, ElementType::float32);
    const auto builder = find_method(Method::pqtree)->make_builder(shape, {});
    RowStream& stream = *builder->row_stream();
    ThreadPool pool(2);
    CancelToken cancel;
    const BuildProgress progress{[](const char*, std::uint64_t, std::uint64_t) {}, &cancel};
    const Arrival arrival = in_order(count, count);
    RowBuffer sample(dimensions);
    sample.append(tids_of(arrival.sample), gather(all, arrival.sample));
    stream.train(sample, count, progress, pool);
    cancel.cancel();
    std::vector<float> rows = all;
    EXPECT_THROW(stream.append(0, tids_of(arrival.rows), rows, &cancel, pool), Cancelled);
    EXPECT_THROW(stream.train(sample, count, progress, pool), Cancelled);
}

}  // namespace
}  // namespace pgwarp::test::pqtree_stream_test
