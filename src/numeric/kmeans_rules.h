// What k-means decides alike on every device: the rows that it starts from, and how small clusters move to where the
// largest are: an empty one to a row of a large one, any other to half of it. No CUDA in here, but device code may call
// what is marked.
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

// The first `wanted` <= count numbers of a shuffle of [0, count).
std::vector<std::uint32_t> draw_rows(std::size_t count, std::size_t wanted, std::uint64_t seed);

// Hashes of these rows: equal for equal rows. Called a few times, each time for rows not asked for before.
using RowHasher = std::function<std::vector<std::uint64_t>(std::span<const std::uint32_t> rows)>;

// Rows to start from, [clusters]: the first of draw_rows() that differ from each other. Where those are fewer, because
// rows repeat, they are repeated; no more than 16 draws a cluster are looked at. count > 0.
std::vector<std::uint32_t> choose_first_rows(std::size_t count, std::size_t clusters, std::uint64_t seed,
                                             const RowHasher& hashes);

// A row's hash is the sum of these over its columns; bits: those of the value + 0.0F, so that zeros are equal.
PGWARP_HOST_DEVICE inline std::uint64_t row_hash_term(std::uint32_t bits, std::size_t column)
{
    return mix_hash(bits + (std::uint64_t{column} << 32));
}

// Clusters of at most this many rows get a new place between iterations: the quarter of a common size. Where most rows
// are in a few clusters that can't be split (equal rows), the median says what is common.
PGWARP_HOST_DEVICE inline std::size_t small_cluster(std::size_t average, std::size_t median)
{
    return (average < median ? average : median) / 4;
}

// The so many largest clusters may be split.
PGWARP_HOST_DEVICE inline std::size_t donor_places(std::size_t clusters)
{
    return (clusters + 3) / 4;
}

// A large cluster, a donor, gives to so many others between two iterations.
inline constexpr std::size_t most_gifts = 3;

// Which of the donor's rows says in what direction it is split; `place`: the moving cluster's in the order of sizes.
PGWARP_HOST_DEVICE inline std::size_t pick_member(std::uint64_t seed, std::size_t donor, std::size_t place,
                                                  std::size_t donor_size)
{
    return static_cast<std::size_t>(mix_hash(seed + donor * 31ULL + place) % donor_size);
}

// How many of a cluster's rows, spread evenly, tell whether it holds different ones.
inline constexpr std::size_t probed_members = 8;

// A cluster can be split where a row of it differs from the centroid by more than the mean's rounding; both as the
// largest magnitude of all columns.
PGWARP_HOST_DEVICE inline bool differs_from_mean(float largest_difference, float largest_mean)
{
    return largest_difference > 1e-5F * largest_mean;
}

// A column of the two centroids that a split leaves: one a step toward the picked row, one away from it, so that the
// plane between them goes through the old centroid. (At the row itself the new centroid would be, in many dimensions,
// farther from all other rows than the old one, and stay alone.)
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
