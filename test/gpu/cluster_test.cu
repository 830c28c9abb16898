// Assignment and k-means against float64 references and the CPU's code.
#include <gtest/gtest.h>

#include "cluster/assign.h"
#include "cluster/kmeans.h"
#include "cluster_fixture.h"

namespace pgwarp::cuda
{
namespace
{

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

// The sum of squared cluster sizes; 1 where all are equal.
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

// More clusters than distinct rows, with half of the rows equal.
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

// Nine of ten rows are equal: their cluster cannot be split.
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

// More donors than a block has threads, and more splits than one launch does.
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

    // Rows with repeats, zeros of both signs among them.
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

}  // namespace
}  // namespace pgwarp::cuda
