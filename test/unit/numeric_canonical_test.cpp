// The canonical distances: the same bits on every instruction set, and the value that a plain loop gives.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "numeric/metric.h"

namespace pgwarp
{
namespace
{

constexpr Metric kMetrics[] = {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1};

// The definition: element i into accumulator i % 8, the accumulators summed pairwise.
double reference_sum(std::size_t dimensions, const std::function<double(std::size_t)>& term)
{
    std::array<double, 8> parts{};
    for (std::size_t i = 0; i < dimensions; ++i) parts[i % 8] += term(i);
    return ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
}

double reference_dot(const float* a, const float* b, std::size_t dimensions)
{
    return reference_sum(dimensions, [=](std::size_t i) { return static_cast<double>(a[i]) * b[i]; });
}

double reference_l2_squared(const float* a, const float* b, std::size_t dimensions)
{
    return reference_sum(dimensions, [=](std::size_t i) {
        const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        return difference * difference;
    });
}

double reference_l1(const float* a, const float* b, std::size_t dimensions)
{
    return reference_sum(
        dimensions, [=](std::size_t i) { return std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])); });
}

double reference_cosine(const float* a, const float* b, std::size_t dimensions)
{
    const double norms = reference_dot(a, a, dimensions) * reference_dot(b, b, dimensions);
    const double similarity = reference_dot(a, b, dimensions) / std::sqrt(norms);
    return similarity > 1 ? 0 : (similarity < -1 ? 2 : 1 - similarity);
}

std::vector<float> random_vector(std::size_t dimensions, std::mt19937& generator)
{
    std::uniform_int_distribution<int> exponent(-2, 2);
    std::normal_distribution<float> normal;
    std::vector<float> result(dimensions);
    for (float& x : result) x = std::ldexp(normal(generator), exponent(generator));
    return result;
}

// Make Highway take one instruction set, for as long as the object lives.
class Target
{
public:
    explicit Target(std::int64_t target)
    {
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
    ~Target()
    {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
};

void expect_same_bits(double got, double expected, const char* what, std::int64_t target, std::size_t dimensions)
{
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
        << what << ", " << hwy::TargetName(target) << ", " << dimensions << " dimensions";
}

// Compare every routine with its definition on the chosen target.
void compare_with_reference(std::int64_t target, std::size_t dimensions, std::mt19937& generator)
{
    const std::vector<float> left = random_vector(dimensions, generator);
    const std::vector<float> right = random_vector(dimensions, generator);
    const float* a = left.data();
    const float* b = right.data();
    const double l2_squared = reference_l2_squared(a, b, dimensions);
    const double dot = reference_dot(a, b, dimensions);
    const double l1 = reference_l1(a, b, dimensions);
    expect_same_bits(canonical_l2_squared(a, b, dimensions), l2_squared, "l2 squared", target, dimensions);
    expect_same_bits(canonical_dot(a, b, dimensions), dot, "dot", target, dimensions);
    expect_same_bits(canonical_l1(a, b, dimensions), l1, "l1", target, dimensions);
    const auto distance = [=](Metric metric) { return canonical_distance(metric, a, b, dimensions); };
    expect_same_bits(distance(Metric::l2), std::sqrt(l2_squared), "l2", target, dimensions);
    expect_same_bits(distance(Metric::inner_product), -dot, "inner product", target, dimensions);
    expect_same_bits(distance(Metric::l1), l1, "l1 distance", target, dimensions);
    const double cosine = reference_cosine(a, b, dimensions);
    expect_same_bits(distance(Metric::cosine), cosine, "cosine", target, dimensions);
}

TEST(Canonical, SameBitsOnEveryTarget)
{
    std::int64_t left = hwy::SupportedTargets();
    ASSERT_NE(left, 0);
    for (; left != 0; left &= left - 1) {
        const std::int64_t target = left & -left;
        const Target chosen(target);
        std::mt19937 generator(1);
        for (const std::size_t dimensions : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 100, 128, 784, 1536, 1537, 16000}) {
            compare_with_reference(target, dimensions, generator);
        }
    }
}

// Half of the values subnormal or large.
std::vector<half_bits> random_halves(std::size_t dimensions, std::mt19937& generator)
{
    std::vector<half_bits> result(dimensions);
    for (half_bits& half : result) {
        do {
            half = static_cast<half_bits>(generator());
            if (generator() % 4 == 0) half &= 0x83FF;
        } while ((half & 0x7C00) == 0x7C00);
    }
    return result;
}

std::vector<float> widened(const std::vector<half_bits>& halves)
{
    std::vector<float> result;
    for (const half_bits half : halves) result.push_back(float_of_half(half));
    return result;
}

TEST(Canonical, HalvesGiveTheBitsOfTheirValuesOnEveryTarget)
{
    for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
        const std::int64_t target = left & -left;
        const Target chosen(target);
        std::mt19937 generator(4);
        for (const std::size_t dimensions : {1, 2, 7, 8, 9, 31, 128, 1537, 16000}) {
            const std::vector<half_bits> a = random_halves(dimensions, generator);
            const std::vector<half_bits> b = random_halves(dimensions, generator);
            const std::vector<float> x = widened(a);
            const std::vector<float> y = widened(b);
            for (const Metric metric : kMetrics) {
                const double expected = canonical_distance(metric, x.data(), y.data(), dimensions);
                expect_same_bits(canonical_distance(metric, a.data(), b.data(), dimensions), expected, "halves", target,
                                 dimensions);
                expect_same_bits(canonical_distance(metric, x.data(), b.data(), dimensions), expected, "mixed", target,
                                 dimensions);
            }
            expect_same_bits(canonical_l2_squared(a.data(), b.data(), dimensions),
                             canonical_l2_squared(x.data(), y.data(), dimensions), "l2 squared", target, dimensions);
            expect_same_bits(canonical_dot(a.data(), b.data(), dimensions),
                             canonical_dot(x.data(), y.data(), dimensions), "dot", target, dimensions);
            expect_same_bits(canonical_norm(a.data(), dimensions), canonical_norm(x.data(), dimensions), "norm", target,
                             dimensions);
        }
    }
}

TEST(Canonical, UnalignedRows)
{
    std::mt19937 generator(2);
    const std::vector<float> a = random_vector(129, generator);
    const std::vector<float> b = random_vector(132, generator);
    for (std::size_t shift = 0; shift < 4; ++shift) {
        EXPECT_EQ(canonical_l2_squared(a.data() + 1, b.data() + shift, 128),
                  canonical_l2_squared(
                      std::vector<float>(a.begin() + 1, a.end()).data(),
                      std::vector<float>(b.begin() + static_cast<std::ptrdiff_t>(shift), b.end()).data(), 128));
    }
}

TEST(Canonical, SymmetricInItsArguments)
{
    std::mt19937 generator(3);
    const std::vector<float> a = random_vector(77, generator);
    const std::vector<float> b = random_vector(77, generator);
    for (const Metric metric : kMetrics) {
        EXPECT_EQ(canonical_distance(metric, a.data(), b.data(), 77),
                  canonical_distance(metric, b.data(), a.data(), 77));
    }
}

TEST(Canonical, Extremes)
{
    const float zero[] = {0, 0};
    const float one[] = {1, 0};
    const float opposite[] = {-1, 0};
    const float largest[] = {std::numeric_limits<float>::max(), 0};
    const float smallest[] = {std::numeric_limits<float>::denorm_min(), 0};
    EXPECT_TRUE(std::isnan(canonical_distance(Metric::cosine, zero, one, 2)));
    EXPECT_EQ(canonical_distance(Metric::cosine, one, one, 2), 0);
    EXPECT_EQ(canonical_distance(Metric::cosine, one, opposite, 2), 2);
    EXPECT_EQ(canonical_distance(Metric::cosine, largest, smallest, 2), 0);
    EXPECT_EQ(canonical_distance(Metric::l2, largest, zero, 2), std::numeric_limits<float>::max());
    EXPECT_EQ(canonical_distance(Metric::l2, smallest, zero, 2), std::numeric_limits<float>::denorm_min());
    EXPECT_EQ(canonical_norm(zero, 2), 0);
}

}  // namespace
}  // namespace pgwarp
