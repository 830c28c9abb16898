// k-means on the CPU: assignment by matrix-product tiles, update by sorted segmented sums (deterministic).
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
    bool spherical = false;  // centroids normalised after each update (cosine)
    bool balanced = false;   // between iterations small clusters leave their rows and take half of a large one
    std::function<void(std::size_t done, std::size_t total)> progress;  // may be empty
    const CancelToken* cancel = nullptr;                                // may be null
};

// Trains centroids [clusters][dimensions] on rows [count][dimensions], starting from different rows (kmeans_rules.h).
// When count < clusters the surplus centroids repeat rows. Never returns NaN; equal rows and duplicates are fine. Same
// input, same bytes, whatever the pool's size.
std::vector<float> train_kmeans(std::span<const float> rows, std::size_t dimensions, const KMeansOptions& options,
                                ThreadPool& pool);

// assignment[i] = index of the centroid nearest (l2) or of largest inner product (inner_product, cosine) to row i;
// ties to the lower index. scores may be empty.
void assign_to_centroids(Metric metric, std::span<const float> rows, std::size_t dimensions,
                         std::span<const float> centroids, std::span<std::uint32_t> assignment, std::span<float> scores,
                         ThreadPool& pool, const CancelToken* cancel = nullptr);

}  // namespace pgwarp
