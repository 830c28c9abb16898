// The product quantizer and the learnt rotation: parts, nearest codewords, and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "numeric/metric.h"
#include "numeric/product_quantizer.h"
#include "numeric/rotation.h"

namespace pgwarp
{
namespace
{

// Values whose directions are correlated, so that a rotation has something to gain.
std::vector<float> correlated_rows(std::size_t count, std::size_t dimensions, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> mixing(dimensions * dimensions);
    for (float& value : mixing) value = normal(generator);
    std::vector<float> rows(count * dimensions, 0.0F);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t source = 0; source < dimensions; ++source) {
            const float value = normal(generator) * std::pow(0.7F, static_cast<float>(source));
            for (std::size_t d = 0; d < dimensions; ++d)
                rows[i * dimensions + d] += value * mixing[source * dimensions + d];
        }
    }
    return rows;
}

double loss(const ProductQuantizer& quantizer, const std::vector<float>& rows, ThreadPool& pool)
{
    const std::size_t dimensions = quantizer.dimensions();
    const std::size_t count = rows.size() / dimensions;
    std::vector<std::uint8_t> codes(count * quantizer.subquantizers());
    quantizer.encode_rows(rows, codes, pool);
    std::vector<float> decoded(dimensions);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        quantizer.decode(codes.data() + i * quantizer.subquantizers(), decoded.data());
        sum += canonical_l2_squared(rows.data() + i * dimensions, decoded.data(), dimensions);
    }
    return sum / static_cast<double>(count);
}

TEST(ProductQuantizer, PartsCoverAllDimensionsNearlyEvenly)
{
    for (const std::size_t dimensions : {1, 7, 128, 131}) {
        for (std::size_t parts = 1; parts <= dimensions; ++parts) {
            const ProductQuantizer quantizer(dimensions, parts);
            ASSERT_EQ(quantizer.part_begin(0), 0U);
            ASSERT_EQ(quantizer.part_begin(parts), dimensions);
            for (std::size_t p = 0; p < parts; ++p) {
                const std::size_t width = quantizer.part_begin(p + 1) - quantizer.part_begin(p);
                ASSERT_GE(width, dimensions / parts);
                ASSERT_LE(width, dimensions / parts + 1);
            }
        }
    }
    EXPECT_THROW(ProductQuantizer(4, 5), std::invalid_argument);
    EXPECT_THROW(ProductQuantizer(4, 0), std::invalid_argument);
}

TEST(ProductQuantizer, EncodesToTheNearestCodeword)
{
    ThreadPool pool(2);
    const std::vector<float> rows = correlated_rows(2000, 13, 1);
    ProductQuantizer quantizer(13, 4);
    quantizer.train(rows, 5, pool);
    std::vector<std::uint8_t> codes(2000 * 4);
    quantizer.encode_rows(rows, codes, pool);
    std::vector<float> decoded(13);
    for (std::size_t i = 0; i < 200; ++i) {
        const float* row = rows.data() + i * 13;
        std::uint8_t code[4];
        quantizer.encode(row, code);
        quantizer.decode(code, decoded.data());
        for (std::size_t p = 0; p < 4; ++p) {
            ASSERT_EQ(code[p], codes[i * 4 + p]);
            const std::size_t begin = quantizer.part_begin(p);
            const std::size_t width = quantizer.part_begin(p + 1) - begin;
            ASSERT_TRUE(std::equal(decoded.begin() + static_cast<std::ptrdiff_t>(begin),
                                   decoded.begin() + static_cast<std::ptrdiff_t>(begin + width),
                                   quantizer.codebook(p) + code[p] * width));
            const double nearest = canonical_l2_squared(row + begin, decoded.data() + begin, width);
            for (std::size_t c = 0; c < 256; ++c) {
                const float* word = quantizer.codebook(p) + c * width;
                ASSERT_LE(nearest, canonical_l2_squared(row + begin, word, width) * (1 + 1e-4) + 1e-4);
            }
        }
    }
}

TEST(ProductQuantizer, MoreCodeLosesLessAndFewRowsAreKeptWhole)
{
    ThreadPool pool(2);
    const std::vector<float> rows = correlated_rows(3000, 16, 2);
    double last = 1e30;
    for (const std::size_t parts : {1, 2, 4, 8, 16}) {
        ProductQuantizer quantizer(16, parts);
        quantizer.train(rows, 1, pool);
        const double now = loss(quantizer, rows, pool);
        EXPECT_LT(now, last);
        last = now;
    }
    const std::vector<float> few(rows.begin(), rows.begin() + 16 * 100);
    ProductQuantizer quantizer(16, 4);
    quantizer.train(few, 1, pool);
    EXPECT_LT(loss(quantizer, few, pool), 1e-6);
}

TEST(Rotation, IsOrthogonalAndLosesLess)
{
    ThreadPool pool(2);
    const std::vector<float> rows = correlated_rows(3000, 16, 3);
    const Rotation rotation(rows, 16, 4, 1, pool);
    const float* matrix = rotation.matrix().data();
    for (std::size_t i = 0; i < 16; ++i) {
        for (std::size_t j = 0; j < 16; ++j) {
            const double product = canonical_dot(matrix + i * 16, matrix + j * 16, 16);
            ASSERT_NEAR(product, i == j ? 1 : 0, 1e-4);
        }
    }
    std::vector<float> rotated(rows.size());
    rotation.apply(rows, rotated, pool);
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(rotated[i], canonical_dot(matrix + i * 16, rows.data(), 16), 1e-3);
    ProductQuantizer plain(16, 4);
    plain.train(rows, 1, pool);
    ProductQuantizer turned(16, 4);
    turned.train(rotated, 1, pool);
    EXPECT_LT(loss(turned, rotated, pool), loss(plain, rows, pool));
}

}  // namespace
}  // namespace pgwarp
