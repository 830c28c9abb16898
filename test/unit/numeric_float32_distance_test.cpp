// Distances in float32, summed in many orders, lie within the bounds that numeric/float32_distance.h gives for them.
#include "numeric/float32_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

using namespace pgwarp;

namespace
{

using Floats = std::vector<float>;
// Adds up `count` terms; `add` returns a sum plus the term of this number.
using Add = std::function<float(float sum, std::size_t term)>;
using Order = std::function<float(std::size_t count, const Add& add)>;

float sum_forwards(std::size_t count, const Add& add)
{
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = add(sum, i);
    return sum;
}

float sum_backwards(std::size_t count, const Add& add)
{
    float sum = 0;
    for (std::size_t i = count; i > 0; --i) sum = add(sum, i - 1);
    return sum;
}

// Vector registers: a sum for each lane, added up at the end one after the other, and the rest after them.
template <std::size_t lanes>
float sum_lanes(std::size_t count, const Add& add)
{
    float sums[lanes] = {};
    const std::size_t whole = count / lanes * lanes;
    for (std::size_t i = 0; i < whole; ++i) sums[i % lanes] = add(sums[i % lanes], i);
    float sum = std::accumulate(sums, sums + lanes, 0.0F);
    for (std::size_t i = whole; i < count; ++i) sum = add(sum, i);
    return sum;
}

float sum_halves(std::size_t first, std::size_t count, const Add& add)
{
    if (count == 1) return add(0.0F, first);
    return sum_halves(first, count / 2, add) + sum_halves(first + count / 2, count - count / 2, add);
}

float sum_pairwise(std::size_t count, const Add& add)
{
    return sum_halves(0, count, add);
}

float sum_shuffled(std::size_t count, const Add& add)
{
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(count);
    std::shuffle(order.begin(), order.end(), random);
    float sum = 0;
    for (const std::size_t i : order) sum = add(sum, i);
    return sum;
}

const std::vector<Order>& orders()
{
    static const std::vector<Order> all = {sum_forwards,  sum_backwards, sum_lanes<4>, sum_lanes<8>,
                                           sum_lanes<16>, sum_pairwise,  sum_shuffled};
    return all;
}

float add_product(float sum, float a, float b, bool fused)
{
    if (fused) return std::fma(a, b, sum);
    const volatile float product = a * b;
    return sum + product;
}

float dot(const Floats& a, const Floats& b, const Order& order, bool fused)
{
    return order(a.size(), [&](float sum, std::size_t i) { return add_product(sum, a[i], b[i], fused); });
}

float l2_squared(const Floats& a, const Floats& b, const Order& order, bool fused)
{
    return order(a.size(), [&](float sum, std::size_t i) {
        const float difference = a[i] - b[i];
        return add_product(sum, difference, difference, fused);
    });
}

float l1(const Floats& a, const Floats& b, const Order& order)
{
    return order(a.size(), [&](float sum, std::size_t i) { return sum + std::fabs(a[i] - b[i]); });
}

// As pgvector computes them, but for the order of sums.
double distance_in_float32(Metric metric, const Floats& a, const Floats& b, const Order& order, bool fused)
{
    switch (metric) {
        case Metric::l2:
            return std::sqrt(double{l2_squared(a, b, order, fused)});
        case Metric::inner_product:
            return -double{dot(a, b, order, fused)};
        case Metric::l1:
            return l1(a, b, order);
        default: {
            const double norms = double{dot(a, a, order, fused)} * double{dot(b, b, order, fused)};
            const double similarity = double{dot(a, b, order, fused)} / std::sqrt(norms);
            if (similarity > 1) return 0;
            return similarity < -1 ? 2 : 1 - similarity;
        }
    }
}

Float32Distance distances_of(Metric metric, const Floats& query, const Floats& row)
{
    const NormRange rows = norm_range(canonical_norm(row.data(), row.size()));
    return {metric, row.size(), canonical_norm(query.data(), query.size()), rows};
}

DistanceBounds bounds_of(Metric metric, const Floats& query, const Floats& row)
{
    const double canonical = canonical_distance(metric, query.data(), row.data(), row.size());
    return distances_of(metric, query, row).bound({canonical, canonical});
}

bool holds(DistanceBounds bounds, double distance)
{
    if (std::isnan(distance)) return std::isinf(bounds.upper);
    return bounds.lower <= distance && distance <= bounds.upper;
}

constexpr Metric metrics[] = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

void expect_held(const Floats& query, const Floats& row)
{
    for (const Metric metric : metrics) {
        const DistanceBounds bounds = bounds_of(metric, query, row);
        for (std::size_t i = 0; i < orders().size(); ++i) {
            for (const bool fused : {false, true}) {
                const double distance = distance_in_float32(metric, query, row, orders()[i], fused);
                EXPECT_TRUE(holds(bounds, distance))
                    << "metric " << static_cast<int>(metric) << " order " << i << " of " << row.size() << ": "
                    << distance << " in [" << bounds.lower << ", " << bounds.upper << "]";
                if (std::isnan(distance) && canonical_norm(row.data(), row.size()) > 0) {
                    EXPECT_TRUE(distances_of(metric, query, row).may_be_nan()) << static_cast<int>(metric);
                }
            }
        }
    }
}

class Vectors
{
public:
    Floats normal(std::size_t dimensions, double mean, double scale)
    {
        std::normal_distribution<double> values(mean, 1);
        Floats made(dimensions);
        for (float& value : made) value = static_cast<float>(scale * values(random_));
        return made;
    }

    // A vector at a small distance.
    Floats near(const Floats& vector, double share)
    {
        std::normal_distribution<double> values(0, share);
        Floats made = vector;
        for (float& value : made) value = static_cast<float>(value * (1 + values(random_)));
        return made;
    }

private:
    std::mt19937_64 random_{7};
};

constexpr std::size_t some_dimensions[] = {1, 2, 3, 7, 8, 17, 100, 384, 1536, 16000};

}  // namespace

TEST(Float32Distance, HoldsSumsOfEveryOrder)
{
    Vectors vectors;
    for (const std::size_t dimensions : some_dimensions) {
        for (const double mean : {0.0, 3.0}) {
            for (int i = 0; i < 5; ++i) {
                const Floats query = vectors.normal(dimensions, mean, 1);
                expect_held(query, vectors.normal(dimensions, mean, 1));
                expect_held(query, vectors.near(query, 1e-3));
                expect_held(query, vectors.near(query, 1e-7));
                expect_held(query, query);
            }
        }
    }
}

TEST(Float32Distance, HoldsSumsThatOverflowOrUnderflow)
{
    Vectors vectors;
    for (const std::size_t dimensions : {std::size_t{1}, std::size_t{5}, std::size_t{384}}) {
        for (int exponent = -148; exponent <= 126; exponent += 2) {
            const Floats query = vectors.normal(dimensions, 0, std::exp2(exponent));
            if (canonical_norm(query.data(), dimensions) == 0) continue;
            expect_held(query, vectors.near(query, 0.1));
            const Floats row = vectors.normal(dimensions, 0.5, 1);
            expect_held(query, row);
            expect_held(row, query);
        }
    }
}

// Sparse vectors, written out over the indices of either: `query` elements of the one, `row` of the other, some of
// both. Products and sums with zeros are exact, so the sums of all orders are those over the elements.
TEST(Float32Distance, HoldsSumsOverSparseVectors)
{
    Vectors vectors;
    constexpr std::size_t dimensions = 1000000000;
    for (const auto& [query_elements, row_elements] :
         {std::pair<std::size_t, std::size_t>{1, 16000}, {30, 100}, {30, 16000}, {16000, 16000}, {300, 3}}) {
        for (const double common : {0.0, 0.5, 1.0}) {
            const std::size_t most_common = std::min(query_elements, row_elements);
            const auto shared = static_cast<std::size_t>(common * static_cast<double>(most_common));
            const std::size_t all = query_elements + row_elements - shared;
            Floats query = vectors.normal(all, 1, 1);
            Floats row = common == 1 ? vectors.near(query, 1e-6) : vectors.normal(all, 1, 1);
            std::fill(query.begin() + static_cast<std::ptrdiff_t>(query_elements), query.end(), 0.0F);
            std::fill(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(query_elements - shared), 0.0F);
            const double query_norm = canonical_norm(query.data(), all);
            const NormRange rows = norm_range(canonical_norm(row.data(), all));
            for (const Metric metric : metrics) {
                const double canonical = canonical_distance(metric, query.data(), row.data(), all);
                const std::size_t terms = sparse_terms(metric, query_elements, dimensions);
                const DistanceBounds bounds =
                    Float32Distance(metric, terms, query_norm, rows).bound({canonical, canonical});
                for (std::size_t i = 0; i < orders().size(); ++i)
                    EXPECT_TRUE(holds(bounds, distance_in_float32(metric, query, row, orders()[i], i % 2 == 0)))
                        << "metric " << static_cast<int>(metric) << " order " << i << " of " << all;
            }
        }
    }
}

TEST(Float32Distance, CountsTheTermsOfSparseVectors)
{
    EXPECT_EQ(sparse_terms(Metric::inner_product, 30, 1000000), 30U);
    EXPECT_EQ(sparse_terms(Metric::cosine, 30, 1000000), 16000U);
    EXPECT_EQ(sparse_terms(Metric::cosine, 30, 200), 200U);
    EXPECT_EQ(sparse_terms(Metric::l2, 30, 1000000), 16030U);
    EXPECT_EQ(sparse_terms(Metric::l1, 30, 200), 200U);
}

// A bound that holds everything would pass the tests above.
TEST(Float32Distance, IsNarrow)
{
    Vectors vectors;
    for (const std::size_t dimensions : some_dimensions) {
        const Floats query = vectors.normal(dimensions, 1, 1);
        const Floats row = vectors.normal(dimensions, 1, 1);
        const double share = 1.1 * (static_cast<double>(dimensions) + 4) * 0x1p-24;
        const double product =
            canonical_norm(query.data(), dimensions) * canonical_norm(row.data(), dimensions) * std::exp2(0.25);
        for (const Metric metric : metrics) {
            const DistanceBounds bounds = bounds_of(metric, query, row);
            const double distance = canonical_distance(metric, query.data(), row.data(), dimensions);
            EXPECT_FALSE(distances_of(metric, query, row).may_be_nan());
            const double scale = metric == Metric::inner_product ? product : metric == Metric::cosine ? 2 : distance;
            EXPECT_LE(bounds.upper - bounds.lower, 2.01 * share * scale) << static_cast<int>(metric);
            EXPECT_LE(bounds.lower, distance);
            EXPECT_GE(bounds.upper, distance);
        }
    }
}

TEST(Float32Distance, GrowsWithTheDistance)
{
    const NormRange rows = norm_range(20);
    for (const Metric metric : metrics) {
        const Float32Distance distances(metric, 384, 7, rows);
        DistanceBounds last = distances.bound({-3, -3});
        for (double distance = -3; distance < 3; distance += 1e-5) {
            const DistanceBounds bounds = distances.bound({distance, distance});
            ASSERT_LE(last.lower, bounds.lower);
            ASSERT_LE(last.upper, bounds.upper);
            last = bounds;
        }
    }
}

TEST(Float32Distance, RangesHoldTheirNorms)
{
    for (double norm = 0x1p-149; norm < 0x1p136; norm *= 1.0173) {
        const NormRange range = norm_range(norm);
        EXPECT_LT(least_norm(range), norm);
        EXPECT_GT(greatest_norm(range), norm);
        EXPECT_GT(least_norm(range) * 1.2, greatest_norm(range));
    }
    EXPECT_TRUE(is_none(norm_range(0)));
    const NormRange joined = join_ranges(join_ranges(norm_range(0), norm_range(8)), norm_range(0.5));
    EXPECT_LT(least_norm(joined), 0.5);
    EXPECT_GT(greatest_norm(joined), 8);
    EXPECT_LT(greatest_norm(join_ranges(norm_range(8), norm_range(0))), 9);
}
