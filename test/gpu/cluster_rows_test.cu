// The forms of rows (product codes, rotated rows, halves) and true neighbours, against the CPU's code.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cluster/hadamard.h"
#include "cluster/half_rows.h"
#include "cluster/product_quantizer.h"
#include "cluster/row_products.h"
#include "cluster/truth.h"
#include "cluster_fixture.h"
#include "methods/recall/truth.h"
#include "numeric/hadamard.h"
#include "numeric/sample.h"

namespace pgwarp::cuda
{
namespace
{

struct Quantized {
    ProductQuantizer quantizer;
    std::vector<std::uint8_t> codes;
};

Quantized quantize(const std::vector<float>& rows, std::size_t dimensions, std::size_t parts)
{
    const auto stream = context().lease(Priority::build);
    Quantized result{ProductQuantizer(dimensions, parts), {}};
    const auto device_rows = to_device(rows, stream);
    const std::size_t count = rows.size() / dimensions;
    DeviceArray<float> codebooks(context().pool(), 256 * dimensions, "test", stream);
    train_product_quantizer(context(), device_rows.data(), count, result.quantizer, 5, codebooks.data(), nullptr,
                            stream);
    DeviceArray<std::uint8_t> codes(context().pool(), count * parts, "test", stream);
    encode_product(context(), device_rows.data(), count, {}, result.quantizer, codebooks.data(), codes.data(), nullptr,
                   stream);
    const auto trained = to_host(codebooks, stream);
    std::copy(trained.begin(), trained.end(), result.quantizer.codebooks().begin());
    result.codes = to_host(codes, stream);
    return result;
}

TEST(ProductQuantizer, LosesNoMoreThanTheCpu)
{
    ThreadPool pool(0);
    const std::pair<std::size_t, std::size_t> shapes[] = {{1, 1},    {3, 2},    {10, 3},  {128, 64},
                                                          {128, 32}, {127, 16}, {100, 7}, {200, 3}};
    for (const auto& [dimensions, parts] : shapes) {
        const auto rows = blob_values(4000, dimensions, 100, 21);
        const Quantized ours = quantize(rows, dimensions, parts);
        ProductQuantizer cpu(dimensions, parts);
        cpu.train(rows, 5, pool);
        std::vector<std::uint8_t> codes(ours.codes.size());
        cpu.encode_rows(rows, codes, pool);
        EXPECT_LE(loss(ours.quantizer, ours.codes, rows), loss(cpu, codes, rows) * 1.01 + 1e-9)
            << dimensions << "/" << parts;
        EXPECT_EQ(ours.codes, quantize(rows, dimensions, parts).codes);

        // The CPU's codes with the device's codebooks: each part is as near, up to rounding.
        ours.quantizer.encode_rows(rows, codes, pool);
        std::size_t differ = 0;
        for (std::size_t i = 0; i < 4000; ++i) {
            for (std::size_t p = 0; p < parts; ++p) {
                const std::size_t begin = ours.quantizer.part_begin(p);
                const std::size_t width = ours.quantizer.part_begin(p + 1) - begin;
                const float* row = rows.data() + i * dimensions + begin;
                const auto at = [&](std::uint8_t code) {
                    return canonical_l2_squared(row, ours.quantizer.codebook(p) + code * width, width);
                };
                const double norm = canonical_dot(row, row, width);
                ASSERT_LE(at(ours.codes[i * parts + p]), at(codes[i * parts + p]) + 1e-6 * norm + 1e-12);
                differ += ours.codes[i * parts + p] != codes[i * parts + p];
            }
        }
        EXPECT_LE(differ, codes.size() / 1000 + 1);
    }
}

TEST(ProductQuantizer, TakesFewEqualAndHugeRows)
{
    const Quantized few = quantize(normal_values(5 * 12, 22), 12, 4);
    EXPECT_LE(loss(few.quantizer, few.codes, normal_values(5 * 12, 22)), 1e-9);
    const Quantized equal = quantize(std::vector<float>(1000 * 6, 0.25F), 6, 3);
    for (const float value : equal.quantizer.codebooks()) EXPECT_EQ(value, 0.25F);
    auto huge = normal_values(700 * 8, 23);
    for (float& value : huge) value *= 1e37F;
    const Quantized large = quantize(huge, 8, 2);
    for (const float value : large.quantizer.codebooks()) EXPECT_TRUE(std::isfinite(value));
    std::size_t used = 0;
    for (const std::uint8_t code : large.codes) used = std::max<std::size_t>(used, code);
    EXPECT_GT(used, 200U);
}

TEST(ProductQuantizer, EncodesResiduals)
{
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t d = 24;
    const auto rows = normal_values(900 * d, 24);
    const auto centroids = normal_values(11 * d, 25);
    std::vector<std::uint32_t> labels(900);
    for (std::size_t i = 0; i < 900; ++i) labels[i] = static_cast<std::uint32_t>(i * 13 % 11);
    std::vector<float> residuals(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) residuals[i] = rows[i] - centroids[labels[i / d] * d + i % d];
    for (const std::size_t parts : {6, 5, 1}) {
        const ProductQuantizer shape(d, parts);
        const auto device_rows = to_device(rows, stream);
        const auto device_residuals = to_device(residuals, stream);
        const auto device_centroids = to_device(centroids, stream);
        const auto device_labels = to_device(labels, stream);
        const auto codebooks = to_device(normal_values(256 * d, 26), stream);
        DeviceArray<std::uint8_t> direct(context().pool(), 900 * parts, "test", stream);
        DeviceArray<std::uint8_t> fused(context().pool(), 900 * parts, "test", stream);
        encode_product(context(), device_residuals.data(), 900, {}, shape, codebooks.data(), direct.data(), nullptr,
                       stream);
        encode_product(context(), device_rows.data(), 900, {device_labels.data(), device_centroids.data()}, shape,
                       codebooks.data(), fused.data(), nullptr, stream);
        EXPECT_EQ(to_host(direct, stream), to_host(fused, stream));
    }
}

// More rows than one launch encodes: the last rows get the codes that they get in a call of their own.
TEST(ProductQuantizer, EncodesManyRows)
{
    const auto stream = context().lease(Priority::build);
    for (const std::size_t d : {2, 12}) {
        constexpr std::size_t count = (std::size_t{1} << 21) + 777;
        constexpr std::size_t some = 5000;
        const ProductQuantizer shape(d, 1);
        const auto rows = to_device(normal_values(count * d, 27), stream);
        const auto codebooks = to_device(normal_values(256 * d, 28), stream);
        DeviceArray<std::uint8_t> all(context().pool(), count, "test", stream);
        DeviceArray<std::uint8_t> last(context().pool(), some, "test", stream);
        encode_product(context(), rows.data(), count, {}, shape, codebooks.data(), all.data(), nullptr, stream);
        encode_product(context(), rows.data() + (count - some) * d, some, {}, shape, codebooks.data(), last.data(),
                       nullptr, stream);
        const auto codes = to_host(all, stream);
        const auto want = to_host(last, stream);
        ASSERT_TRUE(std::equal(want.begin(), want.end(), codes.end() - some)) << d;
        EXPECT_GT(std::set<std::uint8_t>(want.begin(), want.end()).size(), 50U);
    }
}

// More parts than one launch encodes.
TEST(ProductQuantizer, EncodesManyParts)
{
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = 3000;
    constexpr std::size_t d = 1100;
    constexpr std::size_t begin = 1000;
    const std::vector<float> rows = normal_values(count * d, 29);
    const std::vector<float> codebooks = normal_values(256 * d, 30);
    std::vector<float> last_columns;
    for (std::size_t i = 0; i < count; ++i)
        last_columns.insert(last_columns.end(), rows.data() + i * d + begin, rows.data() + (i + 1) * d);
    const auto encode = [&](const std::vector<float>& values, std::size_t parts, const float* books) {
        const auto device_rows = to_device(values, stream);
        const auto device_books = to_device(std::vector<float>(books, books + 256 * parts), stream);
        DeviceArray<std::uint8_t> codes(context().pool(), count * parts, "test", stream);
        encode_product(context(), device_rows.data(), count, {}, ProductQuantizer(parts, parts), device_books.data(),
                       codes.data(), nullptr, stream);
        return to_host(codes, stream);
    };
    const auto codes = encode(rows, d, codebooks.data());
    const auto want = encode(last_columns, d - begin, codebooks.data() + 256 * begin);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t part = begin; part < d; ++part)
            ASSERT_EQ(codes[i * d + part], want[i * (d - begin) + part - begin]) << i << " " << part;
    }
}

// One value of row_products.h by its contract: the dimensions in order, each sum rounded once.
float product_in_order(const float* one, const float* other, std::size_t dimensions, float factor, float norm)
{
    float sum = 0;
    for (std::size_t e = 0; e < dimensions; ++e) sum = std::fmaf(one[e], other[e], sum);
    return std::fmaf(factor, sum, norm);
}

// Dimensions of one launch and of several, in equal and unequal parts.
TEST(RowProducts, AddsInOrder)
{
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t query_count = 131;
    constexpr std::size_t row_count = 140;
    for (const std::size_t d : {5, 256, 257, 512, 700, 1030}) {
        const auto queries = normal_values(query_count * d, 36);
        const auto rows = normal_values(row_count * d, 37);
        const auto norms = normal_values(row_count, 38);
        const auto device_queries = to_device(queries, stream);
        const auto device_rows = to_device(rows, stream);
        const auto device_norms = to_device(norms, stream);
        for (const bool with_norms : {true, false}) {
            constexpr std::size_t stride = row_count + 7;
            DeviceArray<float> out(context().pool(), query_count * stride, "test", stream);
            score_rows(device_queries.data(), query_count, device_rows.data(),
                       with_norms ? device_norms.data() : nullptr, row_count, d, out.data(), stride, stream);
            const auto got = to_host(out, stream);
            for (std::size_t q = 0; q < query_count; ++q) {
                for (std::size_t i = 0; i < row_count; ++i) {
                    const float want = product_in_order(queries.data() + q * d, rows.data() + i * d, d,
                                                        with_norms ? -2.0F : -1.0F, with_norms ? norms[i] : 0.0F);
                    ASSERT_EQ(got[q * stride + i], want) << d << " " << q << " " << i;
                }
            }
        }
    }
}

// More rows than one launch multiplies, residuals among them.
TEST(RowProducts, OfManyRows)
{
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = 1300001;
    constexpr std::size_t d = 3;
    const auto rows = normal_values(count * d, 39);
    const auto rotation = normal_values(d * d, 40);
    const auto centroids = normal_values(7 * d, 42);
    std::vector<std::uint32_t> labels(count);
    for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::uint32_t>(i * 5 % 7);
    const auto device_rows = to_device(rows, stream);
    const auto device_rotation = to_device(rotation, stream);
    const auto device_centroids = to_device(centroids, stream);
    const auto device_labels = to_device(labels, stream);
    DeviceArray<float> out(context().pool(), rows.size(), "test", stream);
    DeviceArray<float> scores(context().pool(), rows.size(), "test", stream);
    DeviceArray<float> turned(context().pool(), rows.size(), "test", stream);
    rotate_rows(device_rows.data(), count, d, {device_labels.data(), device_centroids.data()}, device_rotation.data(),
                out.data(), stream);
    score_rows(device_rotation.data(), d, device_rows.data(), nullptr, count, d, scores.data(), count, stream);
    score_rows(device_rows.data(), count, device_rotation.data(), nullptr, d, d, turned.data(), d, stream);
    const auto rotated = to_host(out, stream);
    const auto scored = to_host(scores, stream);
    const auto scored_too = to_host(turned, stream);
    for (std::size_t i = 0; i < count; ++i) {
        float residual[d];
        for (std::size_t e = 0; e < d; ++e) residual[e] = rows[i * d + e] - centroids[labels[i] * d + e];
        for (std::size_t e = 0; e < d; ++e) {
            const float* line = rotation.data() + e * d;
            ASSERT_EQ(rotated[i * d + e], product_in_order(residual, line, d, 1, 0)) << i;
            const float want = product_in_order(line, rows.data() + i * d, d, -1, 0);
            ASSERT_EQ(scored[e * count + i], want) << i;
            ASSERT_EQ(scored_too[i * d + e], want) << i;
        }
    }
}

// 128 queries fill a tile of blocks, which then meets twice the rows that 129 queries meet.
TEST(RowProducts, ScratchOfManyQueriesSufficesForFewer)
{
    for (const std::size_t dimensions : {257, 512, 2000}) {
        for (const std::size_t queries : {2, 129, 272, 400})
            for (const std::size_t fewer : {std::size_t{1}, queries / 2, queries - 1})
                EXPECT_LE(near_sums(fewer, dimensions), near_sums(queries, dimensions)) << queries << ", " << fewer;
    }
    EXPECT_EQ(near_sums(100, 256), 0U);
}

TEST(RowProducts, RotatesAsFloat64Does)
{
    const auto stream = context().lease(Priority::build);
    for (const std::size_t d : {1, 3, 127, 130}) {
        const auto rows = normal_values(301 * d, 31);
        const auto rotation = normal_values(d * d, 32);
        const auto device_rows = to_device(rows, stream);
        const auto device_rotation = to_device(rotation, stream);
        DeviceArray<float> out(context().pool(), rows.size(), "test", stream);
        rotate_rows(device_rows.data(), 301, d, {}, device_rotation.data(), out.data(), stream);
        const auto got = to_host(out, stream);
        for (std::size_t i = 0; i < got.size(); ++i) {
            const double want = canonical_dot(rows.data() + i / d * d, rotation.data() + i % d * d, d);
            ASSERT_NEAR(got[i], want, 1e-4) << d << " " << i;
        }
    }
}

TEST(Hadamard, GivesTheBitsThatTheCpuGives)
{
    const auto stream = context().lease(Priority::build);
    for (const std::size_t d : {1, 2, 3, 16, 17, 127, 1000, 2049, 4096, 8191, 16000}) {
        constexpr std::size_t count = 37;
        const auto rows = normal_values(count * d, 33);
        const auto centroids = normal_values(5 * d, 34);
        std::vector<std::uint32_t> labels(count);
        for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::uint32_t>(i * 3 % 5);
        const auto signs = draw_signs(d, 35);
        const auto device_rows = to_device(rows, stream);
        const auto device_centroids = to_device(centroids, stream);
        const auto device_labels = to_device(labels, stream);
        const auto device_signs = to_device(signs, stream);
        for (const bool residuals : {false, true}) {
            const ResidualBase base =
                residuals ? ResidualBase{device_labels.data(), device_centroids.data()} : ResidualBase{};
            DeviceArray<float> out(context().pool(), rows.size(), "test", stream);
            hadamard_rotate_rows(device_rows.data(), count, d, base, device_signs.data(), out.data(), stream);
            std::vector<float> want = rows;
            for (std::size_t i = 0; i < count; ++i) {
                for (std::size_t e = 0; e < d && residuals; ++e) want[i * d + e] -= centroids[labels[i] * d + e];
                hadamard_rotate(signs, want.data() + i * d);
            }
            ASSERT_EQ(to_host(out, stream), want) << d << " " << residuals;
        }
    }
}

TEST(HalfRows, StoresTheBitsThatTheCpuStores)
{
    const auto stream = context().lease(Priority::build);
    for (const std::size_t d : {1, 3, 128, 1536}) {
        for (const float factor : {1.0F, 1e-35F, 1e37F}) {
            auto rows = normal_values(1000 * d, 41);
            for (float& value : rows) value = (value + 3) * factor;
            const auto device_rows = to_device(rows, stream);
            const HalfCodec codec = train_half(context(), device_rows.data(), 1000, d, stream);
            const HalfCodec cpu = HalfCodec::train(rows, d);
            ASSERT_EQ(codec.scale, cpu.scale);
            for (std::size_t e = 0; e < d; ++e) ASSERT_FLOAT_EQ(codec.mean[e], cpu.mean[e]);
            const auto mean = to_device(codec.mean, stream);
            DeviceArray<std::uint16_t> out(context().pool(), rows.size(), "test", stream);
            DeviceArray<std::uint32_t> worst(context().pool(), 1, "test", stream);
            check(cudaMemsetAsync(worst.data(), 0, 4, stream), "clear");
            encode_half(device_rows.data(), 1000, codec, mean.data(), out.data(), worst.data(), stream);
            const auto got = to_host(out, stream);
            const auto bits = to_host(worst, stream);
            float error = 0;
            std::vector<half_bits> want(d);
            for (std::size_t i = 0; i < 1000; ++i) {
                codec.encode(rows.data() + i * d, want.data());
                for (std::size_t e = 0; e < d; ++e) ASSERT_EQ(got[i * d + e], want[e]) << d << " " << factor;
                error = std::max(error, codec.error(rows.data() + i * d));
            }
            EXPECT_FLOAT_EQ(*reinterpret_cast<const float*>(bits.data()), error);
        }
    }
}

// More rows than one launch encodes.
TEST(HalfRows, OfManyRows)
{
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = (std::size_t{1} << 20) + 1001;
    constexpr std::size_t d = 2;
    auto rows = normal_values(count * d, 43);
    rows[count * d - 1] = 50;  // the last row has the largest error
    const auto device_rows = to_device(rows, stream);
    const HalfCodec codec = train_half(context(), device_rows.data(), count, d, stream);
    const auto mean = to_device(codec.mean, stream);
    DeviceArray<std::uint16_t> out(context().pool(), rows.size(), "test", stream);
    DeviceArray<std::uint32_t> worst(context().pool(), 1, "test", stream);
    check(cudaMemsetAsync(worst.data(), 0, 4, stream), "clear");
    encode_half(device_rows.data(), count, codec, mean.data(), out.data(), worst.data(), stream);
    const auto got = to_host(out, stream);
    const auto bits = to_host(worst, stream);
    float error = 0;
    half_bits want[d];
    for (std::size_t i = 0; i < count; ++i) {
        codec.encode(rows.data() + i * d, want);
        for (std::size_t e = 0; e < d; ++e) ASSERT_EQ(got[i * d + e], want[e]) << i;
        error = std::max(error, codec.error(rows.data() + i * d));
    }
    EXPECT_FLOAT_EQ(*reinterpret_cast<const float*>(bits.data()), error);
}

TEST(Truth, AgreesWithTheCpu)
{
    ThreadPool pool(0);
    const auto stream = context().lease(Priority::build);
    for (const Shape& shape : {Shape{2, 3, 2}, Shape{900, 17, 20}, Shape{7000, 64, 150}, Shape{2500, 700, 12}}) {
        for (const Metric metric : {Metric::l2, Metric::inner_product}) {
            const auto rows = normal_values(shape.rows * shape.dimensions, 51);
            const auto sample = sample_rows(shape.rows, shape.clusters, 9);
            const auto device_rows = to_device(rows, stream);
            const auto got = calibration_truth(context(), metric, device_rows.data(), shape.rows, shape.dimensions,
                                               sample, pool, nullptr, stream);
            const auto want = pgwarp::calibration_truth(metric, rows, shape.dimensions, sample, pool, nullptr);
            for (std::size_t q = 0; q < sample.size(); ++q) {
                ASSERT_EQ(got[q].size(), want[q].size());
                for (std::size_t i = 0; i < got[q].size(); ++i) {
                    const float* query = rows.data() + sample[q] * shape.dimensions;
                    const double ours =
                        distance(metric, query, rows.data() + got[q][i] * shape.dimensions, shape.dimensions);
                    const double theirs =
                        distance(metric, query, rows.data() + want[q][i] * shape.dimensions, shape.dimensions);
                    ASSERT_NEAR(ours, theirs, 1e-4 * (std::fabs(theirs) + 1));
                }
            }
        }
    }
}

// More rows than one launch compares, with ties on both sides of its end.
TEST(Truth, OfManyRows)
{
    ThreadPool pool(0);
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = (std::size_t{1} << 20) + 5000;
    std::vector<float> rows = normal_values(count * 2, 52);
    for (std::size_t i = (std::size_t{1} << 20) - 400; i < (std::size_t{1} << 20) + 400; ++i)
        rows[2 * i] = rows[2 * i + 1] = 9;
    const std::vector<std::uint32_t> sample{7, (1U << 20) - 1};
    const auto device_rows = to_device(rows, stream);
    const auto got =
        calibration_truth(context(), Metric::l2, device_rows.data(), count, 2, sample, pool, nullptr, stream);
    const auto want = pgwarp::calibration_truth(Metric::l2, rows, 2, sample, pool, nullptr);
    for (std::size_t q = 0; q < sample.size(); ++q) {
        ASSERT_EQ(got[q].size(), want[q].size());
        for (std::size_t i = 0; i < got[q].size(); ++i) {
            const float* query = rows.data() + std::size_t{sample[q]} * 2;
            ASSERT_NEAR(distance(Metric::l2, query, rows.data() + std::size_t{got[q][i]} * 2, 2),
                        distance(Metric::l2, query, rows.data() + std::size_t{want[q][i]} * 2, 2), 1e-3);
        }
    }
    // 799 other rows equal the query; the lower numbers come first.
    for (std::size_t i = 0; i < 399; ++i) ASSERT_EQ(got[1][i], (1U << 20) - 400 + i);
}

// Every row is nearer to the query than the rows before it, so each piece replaces all that were kept.
TEST(Truth, OfRowsThatComeNearer)
{
    ThreadPool pool(0);
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = 400000;
    std::vector<float> rows(count * 2);
    for (std::size_t i = 0; i < count; ++i) rows[2 * i] = static_cast<float>(count - 1 - i) / 1024;
    for (const Metric metric : {Metric::l2, Metric::inner_product}) {
        if (metric == Metric::inner_product)
            for (std::size_t i = 0; i < count; ++i) rows[2 * i] = static_cast<float>(i + 1) / 1024;
        const auto these = to_device(rows, stream);
        const auto truth =
            calibration_truth(context(), metric, these.data(), count, 2, {count - 1}, pool, nullptr, stream);
        ASSERT_EQ(truth[0].size(), 1000U);
        for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(truth[0][i], count - 2 - i);
    }
}

// Squares of these values are 2^28 and more: floats of that size are 32 apart, the nearest rows about 1.
TEST(Truth, OfRowsFarFromTheOrigin)
{
    ThreadPool pool(0);
    const auto stream = context().lease(Priority::build);
    constexpr std::size_t count = 20000;
    std::vector<float> rows;
    for (std::size_t i = 0; i < count; ++i)
        for (const std::size_t value : {i, i % 7, i % 5}) rows.push_back(static_cast<float>(value));
    const std::vector<std::uint32_t> sample{100, 9000, 16500, 19999};
    const auto device_rows = to_device(rows, stream);
    const auto got =
        calibration_truth(context(), Metric::l2, device_rows.data(), count, 3, sample, pool, nullptr, stream);
    const auto want = pgwarp::calibration_truth(Metric::l2, rows, 3, sample, pool, nullptr);
    for (std::size_t q = 0; q < sample.size(); ++q)
        for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(got[q][i], want[q][i]) << sample[q] << ", rank " << i;
}

TEST(Truth, TakesTies)
{
    ThreadPool pool(2);
    const auto stream = context().lease(Priority::build);
    const std::vector<float> rows(3000 * 4, 1.0F);
    const auto device_rows = to_device(rows, stream);
    const auto truth =
        calibration_truth(context(), Metric::l2, device_rows.data(), 3000, 4, {5, 2999}, pool, nullptr, stream);
    ASSERT_EQ(truth[0].size(), 1000U);
    EXPECT_EQ(truth[0][0], 0U);
    EXPECT_EQ(truth[0][5], 6U);
    EXPECT_EQ(truth[1][999], 999U);
}

}  // namespace
}  // namespace pgwarp::cuda
