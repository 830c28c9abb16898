#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "numeric/kmeans.h"
#include "numeric/nearest.h"

namespace pgwarp
{
namespace
{

std::vector<float> random_values(std::size_t count, unsigned seed)
{
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
}

std::uint32_t nearest_by_float64(const float* row, const std::vector<float>& centroids, std::size_t dimensions,
                                 double& distance)
{
    std::uint32_t best = 0;
    distance = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c * dimensions < centroids.size(); ++c) {
        const double found = canonical_l2_squared(row, centroids.data() + c * dimensions, dimensions);
        if (found < distance) {
            distance = found;
            best = static_cast<std::uint32_t>(c);
        }
    }
    return best;
}

TEST(KMeans, AssignsToTheNearestAlsoFarFromTheOrigin)
{
    ThreadPool pool(2);
    for (const std::size_t dimensions : {1, 3, 17, 128}) {
        for (const float offset : {0.0F, 1000.0F}) {
            std::vector<float> rows = random_values(700 * dimensions, 1);
            std::vector<float> centroids = random_values(77 * dimensions, 2);
            for (float& value : rows) value += offset;
            for (float& value : centroids) value += offset;
            std::vector<std::uint32_t> assignment(700);
            assign_to_centroids(Metric::l2, rows, dimensions, centroids, assignment, {}, pool);
            for (std::size_t i = 0; i < 700; ++i) {
                double best = 0;
                nearest_by_float64(rows.data() + i * dimensions, centroids, dimensions, best);
                const double got = canonical_l2_squared(rows.data() + i * dimensions,
                                                        centroids.data() + assignment[i] * dimensions, dimensions);
                ASSERT_LE(got, best * (1 + 1e-5) + 1e-5) << dimensions << " " << offset << " " << i;
            }
        }
    }
}

TEST(KMeans, TiesGoToTheLowerIndex)
{
    const std::vector<float> centroids(4 * 100, 1.5F);
    const std::vector<float> rows(4 * 9, 0.5F);
    std::vector<std::uint32_t> index(9, 77);
    find_nearest(PackedCentroids(centroids, 4), rows.data(), 9, 4, index.data(), nullptr);
    for (const std::uint32_t found : index) EXPECT_EQ(found, 0U);
}

TEST(KMeans, FindsSeparatedClusters)
{
    ThreadPool pool(2);
    std::vector<float> rows = random_values(2000 * 4, 3);
    for (std::size_t i = 0; i < 2000; ++i) rows[i * 4] += static_cast<float>(i % 8) * 100;
    KMeansOptions options;
    options.clusters = 32;
    const std::vector<float> centroids = train_kmeans(rows, 4, options, pool);
    for (std::size_t i = 0; i < 2000; ++i) {
        double distance = 0;
        nearest_by_float64(rows.data() + i * 4, centroids, 4, distance);
        EXPECT_LT(distance, 100);
    }
}

TEST(KMeans, SameBytesForAnyNumberOfThreads)
{
    ThreadPool one(1);
    ThreadPool three(3);
    const std::vector<float> rows = random_values(3000 * 20, 4);
    KMeansOptions options;
    options.clusters = 50;
    options.balanced = true;
    EXPECT_EQ(train_kmeans(rows, 20, options, one), train_kmeans(rows, 20, options, three));
}

TEST(KMeans, TakesEqualFewAndHugeRows)
{
    ThreadPool pool(2);
    KMeansOptions options;
    options.clusters = 10;
    for (const float value : train_kmeans(std::vector<float>(300, 2.5F), 3, options, pool)) EXPECT_EQ(value, 2.5F);
    const std::vector<float> few = train_kmeans(std::vector<float>{1, 2, 3, 4}, 2, options, pool);
    EXPECT_EQ(few.size(), 20U);
    for (std::size_t c = 0; c < 10; ++c) EXPECT_TRUE(few[c * 2] == 1 || few[c * 2] == 3);
    std::vector<float> huge = random_values(500 * 3, 5);
    for (float& value : huge) value *= 3e37F;
    for (const float value : train_kmeans(huge, 3, options, pool)) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(train_kmeans({}, 3, options, pool).size(), 30U);
}

}  // namespace
}  // namespace pgwarp
