// k-means on the CPU: assignment by tiles of a matrix product, update by sorted segmented sums (deterministic).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "numeric/metric.h"
#include "numeric/parallel.h"

namespace pgwarp
{

struct KMeansOptions {
    std::size_t clusters = 0;
    std::size_t iterations = 10;
    std::uint64_t seed = 1;
    bool spherical = false;  // normalises centroids after each update (cosine)
    bool balanced = false;   // between iterations small clusters give up their rows and take half of a large cluster
    std::function<void(std::size_t done, std::size_t total)> progress;  // may be empty
    const CancelToken* cancel = nullptr;                                // may be null
};

// Trains centroids [clusters][dimensions] on rows [count][dimensions], starting from different rows (kmeans_rules.h).
// When count < clusters the surplus centroids repeat rows. Never returns NaN; equal rows are allowed. The same input
// gives the same bytes for any size of the pool. Throws Cancelled.
std::vector<float> train_kmeans(std::span<const float> rows, std::size_t dimensions, const KMeansOptions& options,
                                ThreadPool& pool);

// assignment[i] = index of the centroid that is nearest to row i (l2) or has the largest inner product with it
// (inner_product, cosine); ties go to the lower index.
void assign_to_centroids(Metric metric, std::span<const float> rows, std::size_t dimensions,
                         std::span<const float> centroids, std::span<std::uint32_t> assignment, ThreadPool& pool,
                         const CancelToken* cancel = nullptr);

}  // namespace pgwarp
