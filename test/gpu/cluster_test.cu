// Clustering kernels against float64 references and the CPU's own code.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "cluster/assign.h"
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
    const Shape shapes[] = {{1, 1, 1},      {777, 1, 300},   {513, 3, 129},    {300, 16, 1000},   {1000, 17, 127},
                            {700, 64, 129}, {257, 100, 400}, {600, 127, 50},   {5000, 128, 1024}, {256, 200, 128},
                            {130, 300, 77}, {300, 784, 130}, {140, 1536, 200}, {70, 5000, 30},    {40, 16000, 9}};
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
        {16, Metric::l2, options_of({{"lists", 50}, {"codes", 2}, {"refine", 0}})},
        {33, Metric::cosine, options_of({{"lists", 50}, {"codes", 2}})},
    };
    for (const Case& one : cases) {
        auto values = blob_values(8000, one.dimensions, 200, 61);
        if (one.metric == Metric::cosine) {
            for (std::size_t i = 0; i < 8000; ++i) {
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
