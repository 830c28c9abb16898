// Decisions of k-means that are the same on every device: the first rows, and the moves of small clusters. An empty
// cluster moves to a row of a large one; any other small cluster takes half of a large one. This file needs no CUDA,
// but device code may call the functions marked PGWARP_HOST_DEVICE.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "numeric/hash.h"

namespace pgwarp
{

// Returns the first `wanted` <= count numbers of a shuffle of [0, count).
std::vector<std::uint32_t> draw_rows(std::size_t count, std::size_t wanted, std::uint64_t seed);

// Returns hashes of these rows, equal for equal rows. Called a few times, each time for other rows.
using RowHasher = std::function<std::vector<std::uint64_t>(std::span<const std::uint32_t> rows)>;

// Returns the first rows [clusters]: the first of draw_rows() that differ from each other. If rows repeat and too few
// differ, the chosen rows are repeated; at most 16 draws per cluster are examined. count > 0.
std::vector<std::uint32_t> choose_first_rows(std::size_t count, std::size_t clusters, std::uint64_t seed,
                                             const RowHasher& hashes);

// A row's hash is the sum of these terms over its columns. bits: those of the value + 0.0F, so that -0 and 0 hash
// alike.
PGWARP_HOST_DEVICE inline std::uint64_t row_hash_term(std::uint32_t bits, std::size_t column)
{
    return mix_hash(bits + (std::uint64_t{column} << 32));
}

// Clusters of at most this many rows move between iterations: a quarter of a typical size. If most rows are in a few
// clusters that cannot be split (equal rows), the median is the typical size, else the average.
PGWARP_HOST_DEVICE inline std::size_t small_cluster(std::size_t average, std::size_t median)
{
    return (average < median ? average : median) / 4;
}

// Number of the largest clusters that may be split.
PGWARP_HOST_DEVICE inline std::size_t donor_places(std::size_t clusters)
{
    return (clusters + 3) / 4;
}

// Largest number of clusters that one large cluster, the donor, gives rows to between two iterations.
inline constexpr std::size_t most_gifts = 3;

// Picks the donor's row that gives the direction of the split. `place`: the moving cluster's rank in the order of
// sizes.
PGWARP_HOST_DEVICE inline std::size_t pick_member(std::uint64_t seed, std::size_t donor, std::size_t place,
                                                  std::size_t donor_size)
{
    return static_cast<std::size_t>(mix_hash(seed + donor * 31ULL + place) % donor_size);
}

// Number of a cluster's rows, evenly spread, that are checked for differences.
inline constexpr std::size_t probed_members = 8;

// A cluster can be split if one of its rows differs from the centroid by more than the rounding of the mean. Both
// arguments are the largest magnitude over all columns.
PGWARP_HOST_DEVICE inline bool differs_from_mean(float largest_difference, float largest_mean)
{
    return largest_difference > 1e-5F * largest_mean;
}

// A column of the two centroids that a split leaves: one a step toward the picked row, one a step away from it, so that
// the plane between them goes through the old centroid. (In many dimensions a new centroid at the row itself would be
// farther from all other rows than the old one, and its cluster would keep one row.)
struct SplitValue {
    float toward;
    float away;
};

PGWARP_HOST_DEVICE inline SplitValue split_value(float mean, float row)
{
    constexpr float step = 0.125F;
    constexpr float largest = 3.402823466e38F;
    const float move = step * row - step * mean;
    return {mean + move, std::fmin(std::fmax(mean - move, -largest), largest)};
}

}  // namespace pgwarp
