// The random rotation by Walsh-Hadamard transforms, and the choice between it and a learnt rotation.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "numeric/distance.h"
#include "numeric/hadamard.h"
#include "numeric/rotation.h"

namespace pgwarp
{
namespace
{

constexpr std::size_t awkward[] = {1, 2, 3, 5, 16, 17, 31, 33, 100, 127, 255, 300};

// Row i is the image of the i-th unit vector.
std::vector<std::vector<float>> images(std::size_t dimensions)
{
    const std::vector<std::uint8_t> signs = draw_signs(dimensions, 3);
    std::vector<std::vector<float>> all(dimensions, std::vector<float>(dimensions, 0.0F));
    for (std::size_t i = 0; i < dimensions; ++i) {
        all[i][i] = 1;
        hadamard_rotate(signs, all[i].data());
    }
    return all;
}

TEST(Hadamard, FourTransformsWithoutSignsAreNone)
{
    // A whole transform is its own inverse.
    for (const std::size_t dimensions : {1, 2, 8, 32}) {
        const std::vector<std::uint8_t> signs(HadamardPlan::rounds * dimensions, 0);
        std::vector<float> row(dimensions);
        for (std::size_t d = 0; d < dimensions; ++d) row[d] = static_cast<float>(d) - 2.5F;
        std::vector<float> turned = row;
        hadamard_rotate(signs, turned.data());
        for (std::size_t d = 0; d < dimensions; ++d) EXPECT_NEAR(turned[d], row[d], 1e-5);
    }
    EXPECT_FLOAT_EQ(HadamardPlan(16).scale, 0.25F);
    EXPECT_FLOAT_EQ(HadamardPlan(8).scale, 1 / std::sqrt(8.0F));
    EXPECT_FLOAT_EQ(HadamardPlan(4100).scale, 1 / 64.0F);
}

TEST(Hadamard, IsOrthogonalSoThatItsTransposeIsItsInverse)
{
    for (const std::size_t dimensions : awkward) {
        const auto all = images(dimensions);
        for (std::size_t i = 0; i < dimensions; ++i) {
            for (std::size_t j = 0; j <= i; ++j)
                ASSERT_NEAR(canonical_dot(all[i].data(), all[j].data(), dimensions), i == j ? 1 : 0, 1e-5)
                    << dimensions << ": " << i << ", " << j;
        }
        // A row is found again by its products with the images of the unit vectors.
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        std::vector<float> row(dimensions);
        for (float& value : row) value = normal(random);
        std::vector<float> turned = row;
        hadamard_rotate(draw_signs(dimensions, 3), turned.data());
        for (std::size_t i = 0; i < dimensions; ++i)
            ASSERT_NEAR(canonical_dot(turned.data(), all[i].data(), dimensions), row[i], 1e-4) << dimensions;
    }
}

TEST(Hadamard, KeepsLengthsAndEvensOutWhatDimensionsCarry)
{
    for (const std::size_t dimensions : {2049, 3000, 4096, 4097, 8191, 16000}) {
        const std::vector<std::uint8_t> signs = draw_signs(dimensions, 7);
        // Ten neighbouring dimensions carry all of the length.
        for (const std::size_t begin : {std::size_t{0}, dimensions / 2, dimensions - 10}) {
            std::vector<float> row(dimensions, 0.0F);
            for (std::size_t d = begin; d < begin + 10; ++d) row[d] = 1;
            hadamard_rotate(signs, row.data());
            EXPECT_NEAR(canonical_dot(row.data(), row.data(), dimensions), 10, 1e-4);
            // Each sixteenth of the dimensions carries its share.
            for (std::size_t part = 0; part < 16; ++part) {
                const std::size_t from = part * dimensions / 16;
                const std::size_t width = (part + 1) * dimensions / 16 - from;
                const double share = canonical_dot(row.data() + from, row.data() + from, width) / 10;
                EXPECT_GT(share * 16, 0.4) << dimensions << " from " << begin << ", part " << part;
                EXPECT_LT(share * 16, 2.5) << dimensions << " from " << begin << ", part " << part;
            }
        }
    }
}

TEST(Hadamard, SignsAreThoseOfTheSeed)
{
    EXPECT_EQ(draw_signs(100, 5), draw_signs(100, 5));
    EXPECT_NE(draw_signs(100, 5), draw_signs(100, 6));
    const auto signs = draw_signs(5000, 1);
    std::size_t ones = 0;
    for (const std::uint8_t sign : signs) ones += sign;
    EXPECT_NEAR(static_cast<double>(ones), 10000, 400);
}

TEST(Rotation, IsLearntOrRandomByTheNumberOfDimensions)
{
    ThreadPool pool(2);
    EXPECT_TRUE(Rotation().empty());
    EXPECT_EQ(Rotation(2048).matrix().size(), 2048U * 2048U);
    EXPECT_EQ(Rotation(2048).signs().size(), 0U);
    EXPECT_EQ(Rotation(2049).matrix().size(), 0U);
    EXPECT_EQ(Rotation(2049).signs().size(), 4U * 2049U);
    const std::vector<float> rows(3 * 2049, 0.5F);
    const Rotation random(rows, 2049, 64, 9, pool);
    Rotation loaded(2049);
    std::copy(random.signs().begin(), random.signs().end(), loaded.signs().begin());
    std::vector<float> all(rows.size());
    random.apply(rows, all, pool);
    std::vector<float> one(2049);
    loaded.apply(rows.data(), one.data());
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 2049));
    EXPECT_NEAR(canonical_norm(one.data(), 2049), canonical_norm(rows.data(), 2049), 1e-3);
}

}  // namespace
}  // namespace pgwarp
