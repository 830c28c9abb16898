// k-means on the CPU: assignment, starts, splits of clusters, balancing, and the same bytes on any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "numeric/kmeans.h"
#include "numeric/kmeans_rules.h"
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
            assign_to_centroids(Metric::l2, rows, dimensions, centroids, assignment, pool);
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
    find_nearest(PackedCentroids(centroids, 4), rows.data(), 9, 4, index.data());
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

std::vector<std::uint64_t> all_different(std::span<const std::uint32_t> rows)
{
    return {rows.begin(), rows.end()};
}

TEST(KMeansStart, IsAShuffleWhereRowsDiffer)
{
    for (const std::size_t clusters : {1, 7, 99, 100, 250}) {
        const auto chosen = choose_first_rows(100, clusters, 3, all_different);
        const auto drawn = draw_rows(100, std::min<std::size_t>(clusters, 100), 3);
        EXPECT_EQ(std::set<std::uint32_t>(drawn.begin(), drawn.end()).size(), drawn.size());
        ASSERT_EQ(chosen.size(), clusters);
        for (std::size_t c = 0; c < clusters; ++c) EXPECT_EQ(chosen[c], drawn[c % drawn.size()]);
    }
}

TEST(KMeansStart, TakesARowOnce)
{
    // Row i is one of 12; nine of ten rows are the first of them.
    const auto kind = [](std::uint32_t i) { return i % 10 != 0 ? 0U : i / 10 % 12; };
    for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
        for (const std::size_t clusters : {5, 12, 40}) {
            std::set<std::uint32_t> asked;
            const auto chosen = choose_first_rows(30000, clusters, seed, [&](auto rows) {
                std::vector<std::uint64_t> hashes;
                for (const std::uint32_t row : rows) {
                    EXPECT_TRUE(asked.insert(row).second);
                    hashes.push_back(kind(row));
                }
                return hashes;
            });
            EXPECT_LE(asked.size(), 16 * clusters);
            std::set<std::uint32_t> kinds;
            for (const std::uint32_t row : chosen) kinds.insert(kind(row));
            ASSERT_EQ(chosen.size(), clusters);
            // 80 draws at least, each of them other than the commonest with a chance of a tenth.
            EXPECT_GE(kinds.size(), std::min<std::size_t>(clusters, 5)) << clusters << " clusters, seed " << seed;
        }
    }
}

TEST(KMeansStart, HashesTellRowsApart)
{
    EXPECT_EQ(row_hash_term(0, 0), row_hash_term(0, 0));
    std::set<std::uint64_t> seen;
    for (std::uint32_t bits = 0; bits < 100; ++bits)
        for (std::size_t column = 0; column < 100; ++column) seen.insert(row_hash_term(bits, column));
    EXPECT_EQ(seen.size(), 10000U);
}

TEST(KMeansSplit, StaysFiniteAndGoesThroughTheMean)
{
    const SplitValue halves = split_value(2, 10);
    EXPECT_FLOAT_EQ(halves.toward, 3);
    EXPECT_FLOAT_EQ(halves.away, 1);
    constexpr float largest = std::numeric_limits<float>::max();
    for (const float mean : {-largest, 0.0F, largest}) {
        for (const float row : {-largest, 0.0F, largest}) {
            EXPECT_TRUE(std::isfinite(split_value(mean, row).toward));
            EXPECT_TRUE(std::isfinite(split_value(mean, row).away));
        }
    }
}

struct Quality {
    double objective = 0;
    double imbalance = 0;  // sum of squared cluster sizes, 1 where all are equal
    std::size_t used = 0;  // clusters that have rows
};

Quality quality_of(const std::vector<float>& rows, std::size_t dimensions, const KMeansOptions& options)
{
    ThreadPool pool(2);
    const std::vector<float> centroids = train_kmeans(rows, dimensions, options, pool);
    const std::size_t count = rows.size() / dimensions;
    std::vector<std::uint32_t> labels(count);
    assign_to_centroids(Metric::l2, rows, dimensions, centroids, labels, pool);
    Quality quality;
    std::vector<double> sizes(options.clusters, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
        quality.objective +=
            canonical_l2_squared(rows.data() + i * dimensions, centroids.data() + labels[i] * dimensions, dimensions);
        sizes[labels[i]] += 1;
    }
    for (const double size : sizes) {
        quality.imbalance += size * size * static_cast<double>(sizes.size()) / static_cast<double>(count * count);
        quality.used += size > 0 ? 1 : 0;
    }
    return quality;
}

// Nine of ten rows in one dense blob, the others around 30 centres.
std::vector<float> lopsided_values(std::size_t count, std::size_t dimensions)
{
    std::vector<float> rows = random_values(count * dimensions, 19);
    const std::vector<float> centres = random_values(31 * dimensions, 20);
    for (std::size_t i = 0; i < count; ++i) {
        const bool dense = i % 10 != 0;
        for (std::size_t d = 0; d < dimensions; ++d) {
            float& value = rows[i * dimensions + d];
            value = value * (dense ? 0.05F : 0.5F) + centres[(dense ? 0 : 1 + i / 10 % 30) * dimensions + d];
        }
    }
    return rows;
}

TEST(KMeans, BalancingEvensOut)
{
    for (const std::size_t dimensions : {3, 16, 64, 200}) {
        const std::vector<float> rows = lopsided_values(10000, dimensions);
        KMeansOptions options;
        options.clusters = 100;
        const Quality plain = quality_of(rows, dimensions, options);
        options.balanced = true;
        const Quality balanced = quality_of(rows, dimensions, options);
        EXPECT_LT(balanced.imbalance, plain.imbalance) << dimensions;
        // Even lists increase the error of the sparse rows.
        EXPECT_LT(balanced.objective, plain.objective * 1.3) << dimensions;
    }
}

// Twelve different rows, half of all the same one; five clusters find five places with every seed.
TEST(KMeans, WastesNoClusterOnDuplicates)
{
    for (const std::size_t dimensions : {3, 40}) {
        const std::vector<float> distinct = random_values(12 * dimensions, 18);
        std::vector<float> rows;
        for (std::size_t i = 0; i < 3000; ++i) {
            const std::size_t from = i % 2 == 0 ? 0 : i / 2 % 12;
            rows.insert(rows.end(), distinct.begin() + static_cast<std::ptrdiff_t>(from * dimensions),
                        distinct.begin() + static_cast<std::ptrdiff_t>((from + 1) * dimensions));
        }
        for (const std::size_t clusters : {5, 12}) {
            for (const bool balanced : {false, true}) {
                KMeansOptions options;
                options.clusters = clusters;
                options.balanced = balanced;
                for (options.seed = 1; options.seed < 12; ++options.seed) {
                    const Quality quality = quality_of(rows, dimensions, options);
                    EXPECT_EQ(quality.used, clusters) << dimensions << " " << balanced << " " << options.seed;
                    EXPECT_TRUE(clusters < 12 || quality.objective < 1e-6) << quality.objective;
                }
            }
        }
    }
}

// A cluster of equal rows is the largest and can't be split; the others are not given up for it.
TEST(KMeans, BalancingLeavesEqualRowsAlone)
{
    std::vector<float> rows = random_values(10000 * 16, 22);
    for (std::size_t i = 0; i < 10000; ++i)
        if (i % 10 != 0) std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(i * 16), 16, 0.25F);
    KMeansOptions options;
    options.clusters = 60;
    const Quality plain = quality_of(rows, 16, options);
    options.balanced = true;
    const Quality balanced = quality_of(rows, 16, options);
    EXPECT_LE(balanced.objective, plain.objective * 1.02);
    EXPECT_GE(balanced.used, 59U);
}

}  // namespace
}  // namespace pgwarp
