// k-means without an index, as a build whose result is read and never stored. Options: "clusters", "iterations" and
// "seed". Result: one array of centroids.
#pragma once

#include <cstdint>

#include "protocol/format.h"

namespace pgwarp
{

// Outside the range of the methods' numbers, which pages hold.
inline constexpr Method clustering_method = static_cast<Method>(128);

inline constexpr char array_clusters[] = "clusters";  // f32 [clusters][dimensions]

inline constexpr std::int64_t most_clusters = 65536;
inline constexpr std::int64_t most_cluster_iterations = 1000;

}  // namespace pgwarp
