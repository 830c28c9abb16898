// Fast scores by SIMD: exact for integers on every instruction set, and within score_error_bound() for real values.
#include "numeric/distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numeric_reference.h"

namespace pgwarp
{
namespace
{

using reference::Unaligned;

// The place of a failed check.
std::string place(const char* target, Metric metric, std::size_t dimensions, std::size_t count)
{
    return std::string(target) + " metric " + std::to_string(static_cast<int>(metric)) + " dimensions " +
           std::to_string(dimensions) + " rows " + std::to_string(count);
}

// A query and rows in exact memory, as floats and as halves.
struct Data {
    Data(const std::vector<float>& query_values, const std::vector<float>& row_values, std::size_t dims)
        : dimensions(dims),
          count(row_values.size() / dims),
          query(query_values),
          rows(row_values),
          halves(to_halves(row_values))
    {
    }
    static std::vector<half_bits> to_halves(const std::vector<float>& values)
    {
        std::vector<half_bits> halves(values.size());
        to_half(values.data(), values.size(), halves.data());
        return halves;
    }
    const float* row(std::size_t i) const { return rows.data() + i * dimensions; }

    std::size_t dimensions;
    std::size_t count;
    Unaligned<float> query;
    Unaligned<float> rows;
    Unaligned<half_bits> halves;
};

// Ids that visit rows out of order and twice.
std::vector<std::uint32_t> shuffled_ids(std::size_t count)
{
    std::vector<std::uint32_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::uint32_t>((i * 7 + 3) % count);
    if (count > 1) ids[count - 1] = ids[0];
    return ids;
}

void expect_exact(const char* target, Metric metric, const Data& data)
{
    SCOPED_TRACE(place(target, metric, data.dimensions, data.count));
    const std::vector<std::uint32_t> ids = shuffled_ids(data.count);
    std::vector<float> dense(data.count), gathered(data.count), half(data.count), half_gathered(data.count);
    scores(metric, data.query.data(), data.rows.data(), data.count, data.dimensions, dense.data());
    scores_gather(metric, data.query.data(), data.rows.data(), ids.data(), data.count, data.dimensions,
                  gathered.data());
    half_scores(metric, data.query.data(), data.halves.data(), data.count, data.dimensions, half.data());
    half_scores_gather(metric, data.query.data(), data.halves.data(), ids.data(), data.count, data.dimensions,
                       half_gathered.data());
    for (std::size_t i = 0; i < data.count; ++i) {
        const auto exact =
            static_cast<float>(reference::score(metric, data.query.data(), data.row(i), data.dimensions));
        const auto picked =
            static_cast<float>(reference::score(metric, data.query.data(), data.row(ids[i]), data.dimensions));
        EXPECT_EQ(dense[i], exact) << i;
        EXPECT_EQ(half[i], exact) << i;
        EXPECT_EQ(gathered[i], picked) << i;
        EXPECT_EQ(half_gathered[i], picked) << i;
        EXPECT_EQ(score(metric, data.query.data(), data.row(i), data.dimensions), exact) << i;
    }
}

TEST(Distance, IntegersAreExactOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t dimensions : reference::all_dimensions) {
            for (const std::size_t count : {0, 1, 2, 3, 4, 5, 7, 21}) {
                if (dimensions > 2000 && count > 5) continue;
                const Data data(reference::small_integers(dimensions, 1),
                                reference::small_integers(dimensions * count, 2), dimensions);
                for (const Metric metric : reference::all_metrics) expect_exact(target, metric, data);
            }
        }
    });
}

TEST(Distance, NormsOfIntegersAreExactOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t dimensions : reference::all_dimensions) {
            const std::size_t count = 6;
            const std::vector<float> values = reference::small_integers(dimensions * count, 3);
            const Unaligned<float> rows{values};
            std::vector<float> norms(count);
            squared_norms(rows.data(), count, dimensions, norms.data());
            for (std::size_t i = 0; i < count; ++i) {
                const float* row = rows.data() + i * dimensions;
                const auto exact = static_cast<float>(-reference::score(Metric::inner_product, row, row, dimensions));
                EXPECT_EQ(norms[i], exact) << target << " " << dimensions;
                EXPECT_EQ(squared_norm(row, dimensions), exact) << target << " " << dimensions;
            }
        }
    });
}

TEST(Distance, ScoreDoesNotDependOnItsPlaceInTheBatch)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t dimensions : reference::all_dimensions) {
            const std::size_t count = 7;
            const Data data(reference::normal_values(dimensions, 4), reference::normal_values(dimensions * count, 5),
                            dimensions);
            for (const Metric metric : reference::all_metrics) {
                std::vector<float> all(count);
                scores(metric, data.query.data(), data.rows.data(), count, dimensions, all.data());
                for (std::size_t i = 0; i < count; ++i) {
                    EXPECT_EQ(score(metric, data.query.data(), data.row(i), dimensions), all[i])
                        << place(target, metric, dimensions, i);
                }
            }
        }
    });
}

// Check all forms against float64 with the bound that searches rely on.
void expect_within_bound(const char* target, Metric metric, const Data& data)
{
    SCOPED_TRACE(place(target, metric, data.dimensions, data.count));
    std::vector<float> dense(data.count), tile(data.count), norms(data.count);
    scores(metric, data.query.data(), data.rows.data(), data.count, data.dimensions, dense.data());
    squared_norms(data.rows.data(), data.count, data.dimensions, norms.data());
    // As many copies of the query as make the tile take its packed form.
    const std::size_t copies = 13;
    std::vector<float> queries;
    for (std::size_t c = 0; c < copies; ++c) {
        queries.insert(queries.end(), data.query.data(), data.query.data() + data.dimensions);
    }
    std::vector<float> tiles(copies * data.count), thin(data.count);
    score_tile(metric, queries.data(), copies, data.rows.data(), norms.data(), data.count, data.dimensions,
               tiles.data());
    score_tile(metric, queries.data(), 1, data.rows.data(), norms.data(), data.count, data.dimensions, thin.data());
    const float query_norm = reference::norm(metric, data.query.data(), data.dimensions);
    const double query_square =
        -reference::score(Metric::inner_product, data.query.data(), data.query.data(), data.dimensions);
    for (std::size_t i = 0; i < data.count; ++i) {
        const double exact = reference::score(metric, data.query.data(), data.row(i), data.dimensions);
        const double exact_tile = metric == Metric::l2 ? exact - query_square : exact;
        const double bound = score_error_bound(metric, data.dimensions, query_norm,
                                               reference::norm(metric, data.row(i), data.dimensions));
        ASSERT_TRUE(std::isfinite(bound));
        EXPECT_LE(std::fabs(dense[i] - exact), bound);
        EXPECT_LE(std::fabs(thin[i] - exact_tile), bound);
        for (std::size_t c = 0; c < copies; ++c) EXPECT_LE(std::fabs(tiles[c * data.count + i] - exact_tile), bound);
    }
}

TEST(Distance, RealValuesStayWithinTheErrorBound)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t dimensions : reference::all_dimensions) {
            for (const float spread : {1.0F, 1e-22F, 1e-15F, 1e15F}) {
                if (dimensions > 2000 && spread != 1.0F) continue;
                const std::size_t count = 5;
                const Data data(reference::normal_values(dimensions, 6, spread),
                                reference::normal_values(dimensions * count, 7, spread), dimensions);
                for (const Metric metric : reference::all_metrics) expect_within_bound(target, metric, data);
            }
        }
    });
}

TEST(Distance, NearDuplicatesFarFromZeroStayWithinTheErrorBound)
{
    reference::for_each_target([](const char* target) {
        for (const std::size_t dimensions : {3, 128, 1536}) {
            for (const float centre : {1000.0F, 1e17F}) {
                const std::vector<float> query = reference::normal_values(dimensions, 8, centre / 1e3F, centre);
                std::vector<float> rows;
                for (std::size_t i = 0; i < 4; ++i) {
                    rows.insert(rows.end(), query.begin(), query.end());
                    for (std::size_t d = 0; d < i; ++d) {
                        float& value = rows[i * dimensions + d % dimensions];
                        value = std::nextafter(value, 0.0F);
                    }
                }
                const Data data(query, rows, dimensions);
                for (const Metric metric : reference::all_metrics) expect_within_bound(target, metric, data);
            }
        }
    });
}

TEST(Distance, ErrorBoundIsTightEnoughToBeUseful)
{
    // 128 dimensions of unit vectors: a few units in the last place a dimension, times (1 + 1)^2.
    EXPECT_LT(score_error_bound(Metric::l2, 128, 1, 1), 4 * 140 * 0x1p-24);
    EXPECT_LT(score_error_bound(Metric::cosine, 128, 1, 1), 140 * 0x1p-24);
    EXPECT_GT(score_error_bound(Metric::cosine, 128, 1, 1), 128 * 0x1p-24);
    EXPECT_GT(score_error_bound(Metric::l2, 128, 0, 0), 0);
}

TEST(Distance, ErrorBoundIsInfiniteWhereScoresMayOverflow)
{
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(score_error_bound(Metric::l2, 3, 1e19F, 1e19F), infinity);
    EXPECT_EQ(score_error_bound(Metric::inner_product, 3, 1e20F, 1e19F), infinity);
    EXPECT_EQ(score_error_bound(Metric::l1, 3, 3e38F, 3e38F), infinity);
    EXPECT_EQ(score_error_bound(Metric::l2, 3, std::numeric_limits<float>::quiet_NaN(), 1), infinity);
    EXPECT_EQ(score_error_bound(Metric::l2, std::size_t{1} << 30, 1, 1), infinity);
    EXPECT_LT(score_error_bound(Metric::l2, 3, 5e18F, 5e18F), infinity);
}

// Compare a tile with float64, where integers leave no error.
void expect_exact_tile(const char* target, Metric metric, std::size_t query_count, std::size_t row_count,
                       std::size_t dimensions)
{
    SCOPED_TRACE(place(target, metric, dimensions, row_count) + " queries " + std::to_string(query_count));
    const std::vector<float> query_values = reference::small_integers(query_count * dimensions, 9);
    const std::vector<float> row_values = reference::small_integers(row_count * dimensions, 10);
    const Unaligned<float> queries{query_values};
    const Unaligned<float> rows{row_values};
    std::vector<float> norms(row_count);
    squared_norms(rows.data(), row_count, dimensions, norms.data());
    const Unaligned<float> unaligned_norms{norms};
    const bool l2 = metric == Metric::l2;
    const auto out = std::make_unique<float[]>(query_count * row_count);
    score_tile(metric, queries.data(), query_count, rows.data(), l2 ? unaligned_norms.data() : nullptr, row_count,
               dimensions, out.get());
    std::size_t wrong = 0;
    for (std::size_t q = 0; q < query_count; ++q) {
        for (std::size_t r = 0; r < row_count; ++r) {
            const float* query = queries.data() + q * dimensions;
            const float* row = rows.data() + r * dimensions;
            const Metric product = Metric::inner_product;
            const double exact = l2 ? norms[r] + 2 * reference::score(product, query, row, dimensions)
                                    : reference::score(metric, query, row, dimensions);
            if (out[q * row_count + r] != static_cast<float>(exact)) ++wrong;
        }
    }
    EXPECT_EQ(wrong, 0U);

    // The same rows from the last to the first, each where it lies.
    std::vector<std::uint32_t> ids(row_count);
    for (std::size_t r = 0; r < row_count; ++r) ids[r] = static_cast<std::uint32_t>(row_count - 1 - r);
    const std::vector<float> norms_of_ids(norms.rbegin(), norms.rend());
    std::vector<float> gathered(query_count * row_count);
    score_tile_gather(metric, queries.data(), query_count, rows.data(), ids.data(),
                      l2 ? Unaligned<float>{norms_of_ids}.data() : nullptr, row_count, dimensions, gathered.data());
    for (std::size_t q = 0; q < query_count; ++q) {
        for (std::size_t r = 0; r < row_count; ++r) {
            if (gathered[q * row_count + r] != out[q * row_count + ids[r]]) ++wrong;
        }
    }
    EXPECT_EQ(wrong, 0U) << "gathered";
}

TEST(Distance, TilesOfIntegersAreExactOnEveryTarget)
{
    reference::for_each_target([](const char* target) {
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::l1}) {
            for (const std::size_t dimensions : {1, 3, 8, 17, 127, 300}) {
                for (const std::size_t query_count : {1, 2, 5, 6, 7, 11, 12, 13, 29}) {
                    for (const std::size_t row_count : {1, 3, 15, 16, 31, 32, 33, 70}) {
                        expect_exact_tile(target, metric, query_count, row_count, dimensions);
                    }
                }
            }
            // Several slices of dimensions, several blocks of queries.
            expect_exact_tile(target, metric, 7, 35, 1536);
            expect_exact_tile(target, metric, 7, 3, 16000);
            expect_exact_tile(target, metric, 400, 33, 20);
            expect_exact_tile(target, metric, 200, 65, 257);
        }
    });
}

TEST(Distance, EmptyTileWritesNothing)
{
    float out = 7;
    score_tile(Metric::l2, nullptr, 0, nullptr, nullptr, 5, 3, &out);
    score_tile(Metric::l2, nullptr, 5, nullptr, nullptr, 0, 3, &out);
    EXPECT_EQ(out, 7);
}

}  // namespace
}  // namespace pgwarp
