// Distances of sparse vectors against loops over all dimensions.
#include "numeric/sparse_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace pgwarp
{
namespace
{

struct Sparse {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;

    SparseView view() const { return {indices.data(), values.data(), indices.size()}; }
};

Sparse sparse_of(const std::vector<float>& dense)
{
    Sparse result;
    for (std::uint32_t i = 0; i < dense.size(); ++i) {
        if (dense[i] == 0) continue;
        result.indices.push_back(i);
        result.values.push_back(dense[i]);
    }
    return result;
}

std::vector<float> random_dense(std::size_t dimensions, double filled, std::mt19937& generator)
{
    std::bernoulli_distribution is_filled(filled);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> exponent(-8, 8);
    std::vector<float> result(dimensions);
    for (float& x : result) x = is_filled(generator) ? std::ldexp(normal(generator), exponent(generator)) : 0;
    return result;
}

// One accumulator, all dimensions in order.
struct Sums {
    double l2 = 0;
    double dot = 0;
    double l1 = 0;
    double aa = 0;
    double bb = 0;

    Sums(const std::vector<float>& a, const std::vector<float>& b)
    {
        for (std::size_t i = 0; i < a.size(); ++i) {
            const double x = a[i];
            const double y = b[i];
            l2 += (x - y) * (x - y);
            dot += x * y;
            l1 += std::fabs(x - y);
            aa += x * x;
            bb += y * y;
        }
    }
};

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b)
{
    const Sums sums(a, b);
    const Sparse sparse_a = sparse_of(a);
    const Sparse sparse_b = sparse_of(b);
    const SparseView x = sparse_a.view();
    const SparseView y = sparse_b.view();
    EXPECT_EQ(sparse_distance(Metric::l2, x, y), std::sqrt(sums.l2));
    EXPECT_EQ(sparse_distance(Metric::inner_product, x, y), -sums.dot);
    EXPECT_EQ(sparse_distance(Metric::l1, x, y), sums.l1);
    EXPECT_EQ(sparse_l2_squared(x, y), sums.l2);
    EXPECT_EQ(sparse_norm_squared(x), sums.aa);
    EXPECT_EQ(sparse_norm(y), std::sqrt(sums.bb));
    const double cosine = sparse_distance(Metric::cosine, x, y);
    if (sums.aa == 0 || sums.bb == 0) {
        EXPECT_TRUE(std::isnan(cosine));
    } else {
        EXPECT_EQ(cosine, 1 - std::min(1.0, std::max(-1.0, sums.dot / std::sqrt(sums.aa * sums.bb))));
    }
}

TEST(SparseDistance, EqualsADenseLoop)
{
    std::mt19937 generator(5);
    for (const double filled_a : {0.0, 0.02, 0.3, 1.0}) {
        for (const double filled_b : {0.0, 0.02, 0.3, 1.0}) {
            for (const std::size_t dimensions : {1, 2, 7, 100, 1000}) {
                expect_same_bits(random_dense(dimensions, filled_a, generator),
                                 random_dense(dimensions, filled_b, generator));
            }
        }
    }
}

TEST(SparseDistance, IsSymmetric)
{
    std::mt19937 generator(6);
    for (int round = 0; round < 100; ++round) {
        const Sparse a = sparse_of(random_dense(500, 0.1, generator));
        const Sparse b = sparse_of(random_dense(500, 0.3, generator));
        for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}) {
            EXPECT_EQ(sparse_distance(metric, a.view(), b.view()), sparse_distance(metric, b.view(), a.view()));
        }
    }
}

TEST(SparseDistance, KeepsTheCosineInRange)
{
    std::mt19937 generator(7);
    for (int round = 0; round < 1000; ++round) {
        std::vector<float> dense = random_dense(30, 0.5, generator);
        dense[0] = 1;
        Sparse a = sparse_of(dense);
        EXPECT_GE(sparse_distance(Metric::cosine, a.view(), a.view()), 0);
        Sparse opposite = a;
        for (float& x : opposite.values) x = -x;
        EXPECT_LE(sparse_distance(Metric::cosine, a.view(), opposite.view()), 2);
    }
}

TEST(SparseDistance, HoldsWhatFloatsCannot)
{
    const Sparse a{{3, 4000000000U}, {3e38F, 1e-30F}};
    const Sparse b{{3, 9}, {-3e38F, 2}};
    EXPECT_EQ(sparse_distance(Metric::l1, a.view(), b.view()), 2 * static_cast<double>(3e38F) + 2 + 1e-30F);
    EXPECT_EQ(sparse_distance(Metric::inner_product, a.view(), b.view()),
              static_cast<double>(3e38F) * static_cast<double>(3e38F));
    EXPECT_TRUE(std::isfinite(sparse_distance(Metric::l2, a.view(), b.view())));
}

}  // namespace
}  // namespace pgwarp
