// Random rows, an exact searcher of them on the device, and brute force with the CPU's canonical distance, whose
// answers must be equal to the bit.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "exact/exact.h"
#include "methods/arrays.h"
#include "methods/bounds.h"
#include "methods/ordered_scan.h"
#include "numeric/distance.h"
#include "shared_context.h"

namespace pgwarp::cuda
{

inline Context& device()
{
    return test::shared_context();
}

struct Data {
    std::uint32_t dimensions;
    std::vector<float> rows;
    std::vector<float> queries;
    std::uint32_t count() const { return static_cast<std::uint32_t>(rows.size() / dimensions); }
    std::uint32_t asked() const { return static_cast<std::uint32_t>(queries.size() / dimensions); }
};

inline std::vector<float> gaussian(std::size_t count, unsigned seed, float scale = 1, float shift = 0)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random) * scale + shift;
    return values;
}

inline Data random_data(std::uint32_t rows, std::uint32_t queries, std::uint32_t dimensions, float scale = 1,
                        float shift = 0)
{
    return {dimensions, gaussian(std::size_t{rows} * dimensions, rows + dimensions, scale, shift),
            gaussian(std::size_t{queries} * dimensions, rows + dimensions + 1, scale, shift)};
}

inline void normalise(std::vector<float>& vectors, std::uint32_t dimensions)
{
    for (std::size_t i = 0; i < vectors.size(); i += dimensions) {
        const double norm = canonical_norm(vectors.data() + i, dimensions);
        for (std::uint32_t d = 0; d < dimensions; ++d) vectors[i + d] = static_cast<float>(vectors[i + d] / norm);
    }
}

inline std::vector<RowResult> brute_force(Metric metric, const Data& data, std::uint32_t query, std::uint32_t k,
                                          RowBitmap dead, RowResult cursor = {-INFINITY, 0})
{
    FirstRows first(k);
    for (std::uint32_t row = 0; row < data.count(); ++row) {
        if (bit_is_set(dead, row)) continue;
        const double distance =
            canonical_distance(metric, data.queries.data() + std::size_t{query} * data.dimensions,
                               data.rows.data() + std::size_t{row} * data.dimensions, data.dimensions);
        const RowResult result{metric == Metric::cosine ? lower_bound(metric, distance, 0, 1) : distance, row};
        if (comes_before(cursor, result)) first.offer(result);
    }
    return first.take_sorted();
}

inline std::unique_ptr<Searcher> load(Metric metric, const Data& data)
{
    IndexShape shape{};
    shape.method = Method::exact;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = data.dimensions;
    const ArrayShape array = make_array_shape("vectors", ArrayType::f32, data.count(), data.dimensions);
    auto searcher = make_exact_searcher(device(), shape, {&array, 1});
    const auto bytes = std::as_bytes(std::span(data.rows));
    const std::size_t half = bytes.size() / 8 * 4;
    searcher->write("vectors", half, bytes.subspan(half));
    searcher->write("vectors", 0, bytes.first(half));
    ThreadPool pool(1);
    searcher->finish_load(pool);
    return searcher;
}

inline void expect_same(const std::vector<RowResult>& actual, const std::vector<RowResult>& expected,
                        std::uint32_t query)
{
    ASSERT_EQ(actual.size(), expected.size()) << "query " << query;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i].row, expected[i].row) << "query " << query << " place " << i << " of " << expected.size();
        ASSERT_EQ(std::bit_cast<std::uint64_t>(actual[i].distance), std::bit_cast<std::uint64_t>(expected[i].distance))
            << "query " << query << " place " << i;
    }
}

inline ExactStatistics check_search(Metric metric, Data data, std::uint32_t k,
                                    const std::vector<std::uint64_t>& dead = {})
{
    if (metric == Metric::cosine) {
        normalise(data.rows, data.dimensions);
        normalise(data.queries, data.dimensions);
    }
    const auto searcher = load(metric, data);
    SearchBatch batch;
    batch.queries = data.queries;
    batch.count = data.asked();
    batch.k = k;
    batch.dead = dead;
    std::vector<std::vector<RowResult>> results;
    ThreadPool pool(std::thread::hardware_concurrency());
    searcher->search(batch, results, pool);
    EXPECT_EQ(results.size(), data.asked());
    std::vector<std::vector<RowResult>> expected(data.asked());
    pool.parallel_for(data.asked(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t q = begin; q < end; ++q) {
            expected[q] = brute_force(metric, data, static_cast<std::uint32_t>(q), k, dead);
        }
    });
    for (std::uint32_t q = 0; q < data.asked(); ++q) {
        expect_same(results[q], expected[q], q);
        if (testing::Test::HasFatalFailure()) break;
    }
    const ExactStatistics statistics = exact_statistics(*searcher);
    std::printf("    %u x %u, %u queries, k %u, metric %d: %llu filtered again, %llu scanned\n", data.count(),
                data.dimensions, data.asked(), k, static_cast<int>(metric),
                static_cast<unsigned long long>(statistics.filtered_again),
                static_cast<unsigned long long>(statistics.scanned));
    return statistics;
}

inline constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

}  // namespace pgwarp::cuda
