// Clustering kernels against float64 references and the CPU's own code.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "cluster/assign.h"
#include "cluster/hadamard.h"
#include "cluster/half_rows.h"
#include "cluster/kmeans.h"
#include "cluster/product_quantizer.h"
#include "cluster/row_products.h"
#include "cluster/truth.h"
#include "device/context.h"
#include "device/error.h"
#include "index/calibrate.h"
#include "index/ivfadc/ivfadc.h"
#include "ivfadc/builder.h"
#include "numeric/hadamard.h"
#include "numeric/sample.h"

namespace pgwarp::cuda
{
namespace
{

Context& context()
{
    static Context one(0, 0);
    return one;
}

std::vector<float> normal_values(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

// Rows around `blobs` centres, so that there is something to find.
std::vector<float> blob_values(std::size_t count, std::size_t dimensions, std::size_t blobs, unsigned seed)
{
    const std::vector<float> centres = normal_values(blobs * dimensions, seed + 1000);
    std::vector<float> values = normal_values(count * dimensions, seed);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < dimensions; ++d)
            values[i * dimensions + d] = 0.5F * values[i * dimensions + d] + centres[i * 7919 % blobs * dimensions + d];
    }
    return values;
}

template <class T>
DeviceArray<T> to_device(const std::vector<T>& values, cudaStream_t stream)
{
    DeviceArray<T> array(context().pool(), values.size(), "test", stream);
    if (!values.empty())
        check(cudaMemcpyAsync(array.data(), values.data(), array.bytes(), cudaMemcpyHostToDevice, stream), "upload");
    return array;
}

template <class T>
std::vector<T> to_host(const DeviceArray<T>& array, cudaStream_t stream)
{
    std::vector<T> values(array.size());
    if (!values.empty())
        check(cudaMemcpyAsync(values.data(), array.data(), array.bytes(), cudaMemcpyDeviceToHost, stream), "download");
    check(cudaStreamSynchronize(stream), "wait");
    return values;
}

double distance(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    return metric == Metric::l2 ? canonical_l2_squared(a, b, dimensions) : -canonical_dot(a, b, dimensions);
}

std::vector<std::uint32_t> assign(Metric metric, const std::vector<float>& rows, std::size_t dimensions,
                                  const std::vector<float>& centroids, MatrixPath path)
{
    const auto stream = context().lease(Priority::build);
    const auto device_rows = to_device(rows, stream);
    const auto device_centroids = to_device(centroids, stream);
    DeviceArray<std::uint32_t> labels(context().pool(), rows.size() / dimensions, "test", stream);
    check(cudaMemsetAsync(labels.data(), 0xEE, labels.bytes(), stream), "poison");
    assign_to_centroids(context(), metric, device_rows.data(), rows.size() / dimensions, dimensions,
                        device_centroids.data(), centroids.size() / dimensions, labels.data(), nullptr, stream, path);
    return to_host(labels, stream);
}

// The label's distance is the best one but for `slack` of the magnitudes that fp32 arithmetic sees.
void expect_nearest(Metric metric, const std::vector<float>& rows, std::size_t dimensions,
                    const std::vector<float>& centroids, const std::vector<std::uint32_t>& labels, double slack)
{
    const std::size_t count = rows.size() / dimensions;
    const std::size_t clusters = centroids.size() / dimensions;
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows.data() + i * dimensions;
        ASSERT_LT(labels[i], clusters);
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < clusters; ++c)
            best = std::min(best, distance(metric, row, centroids.data() + c * dimensions, dimensions));
        const double got = distance(metric, row, centroids.data() + labels[i] * dimensions, dimensions);
        const double scale = metric == Metric::l2 ? best : std::fabs(best);
        ASSERT_LE(got, best + slack * scale) << "row " << i << " of " << count << ", d " << dimensions << ", K "
                                             << clusters << ", metric " << static_cast<int>(metric);
    }
}

struct Shape {
    std::size_t rows;
    std::size_t dimensions;
    std::size_t clusters;
};

TEST(Assign, FindsTheNearestForAwkwardShapes)
{
    const Shape shapes[] = {{1, 1, 1},
                            {777, 1, 300},
                            {513, 3, 129},
                            {300, 16, 1000},
                            {1000, 17, 127},
                            {700, 64, 129},
                            {257, 100, 400},
                            {600, 127, 50},
                            {5000, 128, 1024},
                            {256, 200, 128},
                            {130, 300, 77},
                            {300, 784, 130},
                            {140, 1536, 200},
                            {70, 5000, 30},
                            {40, 16000, 9},
                            // Centroids in several launches.
                            {300, 5000, 700},
                            {70, 16000, 300}};
    for (const MatrixPath path : {MatrixPath::best, MatrixPath::portable}) {
        for (const Shape& shape : shapes) {
            const auto rows = normal_values(shape.rows * shape.dimensions, 1);
            const auto centroids = normal_values(shape.clusters * shape.dimensions, 2);
            for (const Metric metric : {Metric::l2, Metric::inner_product}) {
                const auto labels = assign(metric, rows, shape.dimensions, centroids, path);
                expect_nearest(metric, rows, shape.dimensions, centroids, labels, 1e-6);
            }
        }
    }
}

TEST(Assign, StaysRightFarFromTheOriginAndAtAnyMagnitude)
{
    for (const float factor : {1.0F, 1e-30F, 1e36F}) {
        for (const float offset : {0.0F, 1000.0F}) {
            if (factor > 1 && offset > 0) continue;
            for (const std::size_t dimensions : {3, 40, 128}) {
                auto rows = normal_values(500 * dimensions, 3);
                auto centroids = normal_values(140 * dimensions, 4);
                for (float& value : rows) value = (value + offset) * factor;
                for (float& value : centroids) value = (value + offset) * factor;
                const auto labels = assign(Metric::l2, rows, dimensions, centroids, MatrixPath::best);
                expect_nearest(Metric::l2, rows, dimensions, centroids, labels, 1e-5);
            }
        }
    }
}

TEST(Assign, ServesRowsOfVeryDifferentLength)
{
    auto rows = normal_values(400 * 96, 5);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= std::pow(10.0F, static_cast<float>(i / 96 % 9) - 4);
    const auto centroids = normal_values(150 * 96, 6);
    expect_nearest(Metric::l2, rows, 96, centroids, assign(Metric::l2, rows, 96, centroids, MatrixPath::best), 1e-6);
}

TEST(Assign, TiesBetweenTwoGoToTheLowerIndex)
{
    auto centroids = normal_values(200 * 32, 7);
    for (std::size_t c = 0; c < 100; ++c)
        std::copy_n(centroids.begin() + static_cast<std::ptrdiff_t>(c * 32), 32,
                    centroids.begin() + static_cast<std::ptrdiff_t>((c + 100) * 32));
    for (const std::uint32_t label : assign(Metric::l2, normal_values(500 * 32, 8), 32, centroids, MatrixPath::best))
        EXPECT_LT(label, 100U);
}

std::vector<float> train(const std::vector<float>& rows, std::size_t dimensions, const KMeansOptions& options,
                         MatrixPath path = MatrixPath::best)
{
    const auto stream = context().lease(Priority::build);
    const auto device_rows = to_device(rows, stream);
    DeviceArray<float> centroids(context().pool(), options.clusters * dimensions, "test", stream);
    train_kmeans(context(), device_rows.data(), rows.size() / dimensions, dimensions, options, centroids.data(), stream,
                 path);
    return to_host(centroids, stream);
}

double objective(const std::vector<float>& rows, std::size_t dimensions, const std::vector<float>& centroids)
{
    const auto labels = assign(Metric::l2, rows, dimensions, centroids, MatrixPath::best);
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i)
        sum +=
            canonical_l2_squared(rows.data() + i * dimensions, centroids.data() + labels[i] * dimensions, dimensions);
    return sum;
}

TEST(KMeans, IsAsGoodAsTheCpu)
{
    ThreadPool pool(0);
    const Shape shapes[] = {{6000, 1, 20},     {9000, 3, 64},    {20000, 127, 200},
                            {30000, 128, 256}, {3000, 1536, 40}, {3000, 20, 1}};
    for (const Shape& shape : shapes) {
        for (const bool balanced : {false, true}) {
            const auto rows = blob_values(shape.rows, shape.dimensions, shape.clusters / 2 + 1, 11);
            KMeansOptions options;
            options.clusters = shape.clusters;
            options.balanced = balanced;
            const double cpu =
                objective(rows, shape.dimensions, pgwarp::train_kmeans(rows, shape.dimensions, options, pool));
            const auto fast = train(rows, shape.dimensions, options);
            EXPECT_LE(objective(rows, shape.dimensions, fast), cpu * 1.01) << shape.dimensions << " " << balanced;
            EXPECT_EQ(fast, train(rows, shape.dimensions, options)) << "not the same bytes";
            const auto portable = train(rows, shape.dimensions, options, MatrixPath::portable);
            EXPECT_LE(objective(rows, shape.dimensions, portable), cpu * 1.01) << shape.dimensions << " portable";
        }
    }
}

// Sum of squared cluster sizes, 1 where all are equal.
double imbalance(const std::vector<float>& rows, std::size_t dimensions, const std::vector<float>& centroids)
{
    const auto labels = assign(Metric::l2, rows, dimensions, centroids, MatrixPath::best);
    std::vector<double> sizes(centroids.size() / dimensions, 0.0);
    for (const std::uint32_t label : labels) sizes[label] += 1;
    double sum = 0;
    for (const double size : sizes) sum += size * size;
    const auto count = static_cast<double>(labels.size());
    return sum * static_cast<double>(sizes.size()) / (count * count);
}

TEST(KMeans, TakesCentroidsInSeveralLaunches)
{
    ThreadPool pool(0);
    constexpr std::size_t dimensions = 16000;
    const auto rows = blob_values(900, dimensions, 100, 16);
    KMeansOptions options;
    options.clusters = 700;
    options.iterations = 4;
    const double cpu = objective(rows, dimensions, pgwarp::train_kmeans(rows, dimensions, options, pool));
    for (const MatrixPath path : {MatrixPath::best, MatrixPath::portable})
        EXPECT_LE(objective(rows, dimensions, train(rows, dimensions, options, path)), cpu * 1.01);
}

TEST(KMeans, TakesAboutAsManyClustersAsRows)
{
    ThreadPool pool(0);
    for (const std::size_t count : {1, 2, 60}) {
        for (const std::size_t clusters : {count - 1, count, count + 1, 3 * count}) {
            if (clusters == 0) continue;
            for (const std::size_t dimensions : {2, 40}) {
                for (const bool balanced : {false, true}) {
                    const auto rows = normal_values(count * dimensions, 17);
                    KMeansOptions options;
                    options.clusters = clusters;
                    options.balanced = balanced;
                    const auto cpu = pgwarp::train_kmeans(rows, dimensions, options, pool);
                    const auto fast = train(rows, dimensions, options);
                    if (clusters >= count) {
                        EXPECT_EQ(fast, cpu) << count << " rows, " << clusters << " clusters";
                    } else {
                        EXPECT_LE(objective(rows, dimensions, fast), objective(rows, dimensions, cpu) * 1.01 + 1e-6)
                            << count << " rows, " << clusters << " clusters, " << dimensions << " " << balanced;
                    }
                }
            }
        }
    }
}

// More clusters than different rows, half of the rows the same.
TEST(KMeans, TakesManyDuplicates)
{
    ThreadPool pool(0);
    for (const std::size_t dimensions : {3, 40}) {
        const auto distinct = normal_values(12 * dimensions, 18);
        std::vector<float> rows;
        for (std::size_t i = 0; i < 3000; ++i) {
            const std::size_t from = i % 2 == 0 ? 0 : i / 2 % 12;
            rows.insert(rows.end(), distinct.begin() + static_cast<std::ptrdiff_t>(from * dimensions),
                        distinct.begin() + static_cast<std::ptrdiff_t>((from + 1) * dimensions));
        }
        for (const std::size_t clusters : {5, 12, 40}) {
            for (const bool balanced : {false, true}) {
                KMeansOptions options;
                options.clusters = clusters;
                options.balanced = balanced;
                const auto fast = train(rows, dimensions, options);
                for (const float value : fast) ASSERT_TRUE(std::isfinite(value));
                EXPECT_EQ(fast, train(rows, dimensions, options)) << "not the same bytes";
                const double cpu = objective(rows, dimensions, pgwarp::train_kmeans(rows, dimensions, options, pool));
                EXPECT_LE(objective(rows, dimensions, fast), cpu * (clusters < 12 ? 1.2 : 1.05) + 1e-3)
                    << clusters << " clusters, " << dimensions << " " << balanced;
            }
        }
    }
}

TEST(KMeans, BalancesAsTheCpuDoes)
{
    ThreadPool pool(0);
    for (const std::size_t dimensions : {3, 64, 200}) {
        // Nine of ten rows in one blob.
        auto rows = blob_values(20000, dimensions, 30, 19);
        const auto centre = normal_values(dimensions, 20);
        const auto noise = normal_values(rows.size(), 21);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i / dimensions % 10 != 0) rows[i] = centre[i % dimensions] + 0.05F * noise[i];
        }
        KMeansOptions options;
        options.clusters = 100;
        const double plain = imbalance(rows, dimensions, train(rows, dimensions, options));
        options.balanced = true;
        const auto centroids = train(rows, dimensions, options);
        EXPECT_EQ(centroids, train(rows, dimensions, options)) << "not the same bytes";
        const double ours = imbalance(rows, dimensions, centroids);
        const auto cpu = pgwarp::train_kmeans(rows, dimensions, options, pool);
        EXPECT_LE(ours, plain) << dimensions;
        EXPECT_LE(ours, imbalance(rows, dimensions, cpu) * 1.1) << dimensions;
        EXPECT_LE(objective(rows, dimensions, centroids), objective(rows, dimensions, cpu) * 1.02) << dimensions;
    }
}

// Nine of ten rows are the same: a cluster that can't be split.
TEST(KMeans, BalancingLeavesEqualRowsAlone)
{
    ThreadPool pool(0);
    auto rows = normal_values(20000 * 16, 22);
    for (std::size_t i = 0; i < 20000; ++i)
        if (i % 10 != 0) std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(i * 16), 16, 0.25F);
    KMeansOptions options;
    options.clusters = 60;
    options.balanced = true;
    const double cpu = objective(rows, 16, pgwarp::train_kmeans(rows, 16, options, pool));
    EXPECT_LE(objective(rows, 16, train(rows, 16, options)), cpu * 1.02);
}

// More donors than a block has threads, more launches of splits than one.
TEST(KMeans, BalancesThousandsOfClusters)
{
    ThreadPool pool(0);
    auto rows = blob_values(40000, 8, 50, 24);
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (i / 8 % 4 != 0) rows[i] *= 0.01F;
    KMeansOptions options;
    options.clusters = 5000;
    options.iterations = 4;
    options.balanced = true;
    const auto centroids = train(rows, 8, options);
    const auto cpu = pgwarp::train_kmeans(rows, 8, options, pool);
    EXPECT_LE(imbalance(rows, 8, centroids), imbalance(rows, 8, cpu) * 1.05);
    EXPECT_LE(objective(rows, 8, centroids), objective(rows, 8, cpu) * 1.02);
}

TEST(KMeans, SphericalCentroidsHaveLengthOne)
{
    auto rows = blob_values(5000, 48, 40, 12);
    KMeansOptions options;
    options.clusters = 50;
    options.spherical = true;
    const auto centroids = train(rows, 48, options);
    for (std::size_t c = 0; c < 50; ++c) EXPECT_NEAR(canonical_norm(centroids.data() + c * 48, 48), 1, 1e-6);
}

TEST(KMeans, StartsFromTheRowsThatTheCpuStartsFrom)
{
    ThreadPool pool(1);
    const auto rows = normal_values(500 * 5, 13);
    KMeansOptions options;
    options.clusters = 60;
    options.iterations = 0;
    EXPECT_EQ(train(rows, 5, options), pgwarp::train_kmeans(rows, 5, options, pool));
    options.clusters = 700;
    EXPECT_EQ(train(rows, 5, options), pgwarp::train_kmeans(rows, 5, options, pool));

    // Rows that repeat, zeros of both signs among them.
    std::vector<float> few(4000 * 5, 0.0F);
    for (std::size_t i = 0; i < 4000; ++i) {
        if (i % 3 == 0) few[i * 5 + 2] = -0.0F;
        if (i % 10 == 0) few[i * 5] = static_cast<float>(i % 70);
    }
    for (const std::size_t clusters : {4, 7, 60}) {
        options.clusters = clusters;
        EXPECT_EQ(train(few, 5, options), pgwarp::train_kmeans(few, 5, options, pool)) << clusters;
    }
}

TEST(KMeans, TakesEqualFewAndHugeRows)
{
    KMeansOptions options;
    options.clusters = 10;
    for (const std::size_t dimensions : {3, 40}) {
        for (const float value : train(std::vector<float>(300 * dimensions, 2.5F), dimensions, options))
            ASSERT_EQ(value, 2.5F);
        auto huge = normal_values(500 * dimensions, 14);
        for (float& value : huge) value *= 3e37F;
        for (const float value : train(huge, dimensions, options)) ASSERT_TRUE(std::isfinite(value));
        for (const float value : train({}, dimensions, options)) ASSERT_EQ(value, 0.0F);
    }
}

TEST(KMeans, StopsWhenCancelled)
{
    CancelToken token;
    token.cancel();
    KMeansOptions options;
    options.clusters = 10;
    options.cancel = &token;
    EXPECT_THROW(train(normal_values(500 * 20, 15), 20, options), Cancelled);
}

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

double loss(const ProductQuantizer& quantizer, const std::vector<std::uint8_t>& codes, const std::vector<float>& rows)
{
    const std::size_t dimensions = quantizer.dimensions();
    std::vector<float> decoded(dimensions);
    double sum = 0;
    for (std::size_t i = 0; i * dimensions < rows.size(); ++i) {
        quantizer.decode(codes.data() + i * quantizer.subquantizers(), decoded.data());
        sum += canonical_l2_squared(decoded.data(), rows.data() + i * dimensions, dimensions);
    }
    return sum;
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

        // The CPU's codes on our codebooks: each part is as near but for rounding.
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

TEST(Truth, AgreesWithTheCpu)
{
    ThreadPool pool(0);
    const auto stream = context().lease(Priority::build);
    for (const Shape& shape : {Shape{2, 3, 2}, Shape{900, 17, 20}, Shape{7000, 64, 150}}) {
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

// More rows than one launch goes through, and ties on both sides of its end.
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
    // 799 rows equal to the query, the lower ones first.
    for (std::size_t i = 0; i < 399; ++i) ASSERT_EQ(got[1][i], (1U << 20) - 400 + i);
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

struct Built {
    std::unique_ptr<Builder> builder;
    std::unique_ptr<RowBuffer> rows;

    template <class T>
    std::vector<T> array(const char* name) const
    {
        for (const ArrayShape& shape : builder->arrays()) {
            if (std::string(shape.name) != name) continue;
            std::vector<T> values(shape.bytes() / sizeof(T));
            builder->read(name, 0, std::as_writable_bytes(std::span(values)));
            return values;
        }
        return {};
    }
};

Built build(bool on_device, const std::vector<float>& values, std::size_t dimensions, Metric metric,
            const ParameterList& options, const CancelToken* cancel = nullptr, Context& on = context())
{
    static ThreadPool pool(0);
    IndexShape shape{};
    shape.method = Method::ivfadc;
    shape.metric = static_cast<std::uint8_t>(metric);
    shape.dimensions = static_cast<std::uint32_t>(dimensions);
    Built built;
    built.rows = std::make_unique<RowBuffer>(dimensions);
    std::vector<Tid> tids(values.size() / dimensions);
    for (std::size_t i = 0; i < tids.size(); ++i) tids[i] = {static_cast<std::uint32_t>(i), 1, 0};
    built.rows->append(tids, values);
    built.builder = on_device ? make_ivfadc_builder(on, shape, options, make_ivfadc_searcher)
                              : pgwarp::make_ivfadc_builder(shape, options);
    BuildProgress progress;
    progress.report = [](const char*, std::uint64_t, std::uint64_t) {};
    progress.cancel = cancel;
    built.builder->run(*built.rows, progress, pool);
    return built;
}

ParameterList options_of(std::initializer_list<std::pair<const char*, std::int64_t>> items)
{
    ParameterList list;
    for (const auto& [name, value] : items) list.set(name, value);
    return list;
}

void expect_same_shapes(const Built& ours, const Built& cpu)
{
    const auto mine = ours.builder->arrays();
    const auto theirs = cpu.builder->arrays();
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        EXPECT_STREQ(mine[i].name, theirs[i].name);
        EXPECT_EQ(mine[i].type, theirs[i].type);
        EXPECT_EQ(mine[i].rows, theirs[i].rows);
        EXPECT_EQ(mine[i].width, theirs[i].width);
    }
    const ParameterList a = ours.builder->effective_options();
    const ParameterList b = cpu.builder->effective_options();
    ASSERT_EQ(a.count, b.count);
    for (std::uint32_t i = 0; i < a.count; ++i) EXPECT_EQ(a.items[i].value, b.get(a.items[i].name, -1));
}

void expect_same_calibration(const Calibration& ours, const Calibration& cpu)
{
    ASSERT_EQ(ours.count, cpu.count);
    EXPECT_EQ(ours.sample, cpu.sample);
    for (std::uint32_t i = 0; i < ours.count; ++i) {
        EXPECT_EQ(ours.points[i].effort, cpu.points[i].effort);
        for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(ours.points[i].recall[k], cpu.points[i].recall[k], 0.12);
    }
}

TEST(IvfadcBuilder, MakesWhatTheCpuMakes)
{
    struct Case {
        std::size_t dimensions;
        Metric metric;
        ParameterList options;
    };
    const Case cases[] = {
        {24, Metric::l2, options_of({{"lists", 60}})},
        {33, Metric::l2, options_of({{"subquantizers", 5}, {"refine", 2}})},
        {24, Metric::inner_product, options_of({{"lists", 60}, {"codes", 1}})},
        {32, Metric::cosine, options_of({{"lists", 40}, {"opq", 1}})},
        {16, Metric::l2, options_of({{"lists", 50}, {"subquantizers", 8}, {"refine", 0}})},
        {2500, Metric::l2, options_of({{"lists", 10}, {"subquantizers", 250}, {"opq", 1}, {"refine", 0}})},
        {16, Metric::l2, options_of({{"lists", 50}, {"codes", 2}, {"refine", 0}})},
        {33, Metric::cosine, options_of({{"lists", 50}, {"codes", 2}})},
    };
    for (const Case& one : cases) {
        const std::size_t rows = one.dimensions > 1000 ? 1500 : 8000;
        auto values = blob_values(rows, one.dimensions, 200, 61);
        if (one.metric == Metric::cosine) {
            for (std::size_t i = 0; i < rows; ++i) {
                float* row = values.data() + i * one.dimensions;
                const double norm = canonical_norm(row, one.dimensions);
                for (std::size_t d = 0; d < one.dimensions; ++d) row[d] = static_cast<float>(row[d] / norm);
            }
        }
        const Built ours = build(true, values, one.dimensions, one.metric, one.options);
        const Built cpu = build(false, values, one.dimensions, one.metric, one.options);
        expect_same_shapes(ours, cpu);
        expect_same_calibration(ours.builder->calibration(), cpu.builder->calibration());

        const auto centroids = ours.array<float>(array_centroids);
        const auto lists = ours.array<std::uint32_t>(array_list_of_row);
        const Metric coarse = one.metric == Metric::cosine ? Metric::inner_product : Metric::l2;
        expect_nearest(coarse, values, one.dimensions, centroids, lists, 1e-6);
        EXPECT_EQ(ours.array<std::uint16_t>(array_half), cpu.array<std::uint16_t>(array_half));
        EXPECT_EQ(ours.array<float>(array_half_scale), cpu.array<float>(array_half_scale));
        EXPECT_EQ(ours.array<float>(array_vectors), cpu.array<float>(array_vectors));
        EXPECT_EQ(ours.array<std::uint8_t>(array_rotation_signs), cpu.array<std::uint8_t>(array_rotation_signs));

        const Built again = build(true, values, one.dimensions, one.metric, one.options);
        EXPECT_EQ(again.array<std::uint8_t>(array_codes), ours.array<std::uint8_t>(array_codes));
        EXPECT_EQ(again.array<float>(array_centroids), centroids);
    }
}

TEST(IvfadcBuilder, CodesLoseNoMoreThanTheCpus)
{
    const auto values = blob_values(9000, 24, 300, 62);
    double lost[2] = {};
    for (const bool on_device : {false, true}) {
        const Built built = build(on_device, values, 24, Metric::l2, options_of({{"lists", 64}}));
        const auto centroids = built.array<float>(array_centroids);
        const auto lists = built.array<std::uint32_t>(array_list_of_row);
        ProductQuantizer quantizer(24, 6);
        const auto codebooks = built.array<float>(array_codebooks);
        std::copy(codebooks.begin(), codebooks.end(), quantizer.codebooks().begin());
        std::vector<float> residuals(values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            residuals[i] = values[i] - centroids[lists[i / 24] * 24 + i % 24];
        lost[on_device] = loss(quantizer, built.array<std::uint8_t>(array_codes), residuals);
    }
    EXPECT_LE(lost[1], lost[0] * 1.02);
}

TEST(IvfadcBuilder, TakesNoneFewAndEqualRows)
{
    for (const std::size_t count : {0, 1, 2, 7, 300}) {
        for (const std::int64_t refine : {0, 1, 2}) {
            const std::vector<float> values(count * 5, 1.5F);
            const ParameterList options = options_of({{"lists", 9}, {"refine", refine}});
            const Built ours = build(true, values, 5, Metric::l2, options);
            const Built cpu = build(false, values, 5, Metric::l2, options);
            expect_same_shapes(ours, cpu);
            for (const std::uint32_t list : ours.array<std::uint32_t>(array_list_of_row)) EXPECT_LT(list, 9U);
        }
    }
}

TEST(IvfadcBuilder, LeavesWhatDoesNotFitToTheCpu)
{
    Context small(0, std::uint64_t{1} << 20);
    const auto values = blob_values(20000, 20, 100, 64);
    const ParameterList options = options_of({{"lists", 30}});
    const Built ours = build(true, values, 20, Metric::l2, options, nullptr, small);
    const Built cpu = build(false, values, 20, Metric::l2, options);
    expect_same_shapes(ours, cpu);
    EXPECT_EQ(ours.array<float>(array_centroids), cpu.array<float>(array_centroids));
    EXPECT_EQ(ours.array<std::uint8_t>(array_codes), cpu.array<std::uint8_t>(array_codes));
    EXPECT_EQ(small.pool().used(), 0U);
}

TEST(IvfadcBuilder, StopsWhenCancelled)
{
    CancelToken token;
    token.cancel();
    EXPECT_THROW(build(true, normal_values(5000 * 8, 63), 8, Metric::l2, {}, &token), Cancelled);
    IndexShape shape{};
    shape.metric = static_cast<std::uint8_t>(Metric::l1);
    shape.dimensions = 4;
    EXPECT_THROW(make_ivfadc_builder(context(), shape, {}, make_ivfadc_searcher), BadRequest);
}

}  // namespace
}  // namespace pgwarp::cuda
