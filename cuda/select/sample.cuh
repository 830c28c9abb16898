// The first threshold of a pass over a row: an order statistic of a sample of whole sectors, one at a hashed place in
// each of equal parts of the row. Keys are ranked, not scores, so that rows of equal values cost no more than others.
// Places are spread, so that sorted rows do not either.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "select/block_rank.cuh"
#include "select/row_span.cuh"

namespace pgwarp::cuda
{

// The ranks in the sample between which the threshold is taken; lowest = 0: no threshold, all keys pass.
struct SampleRank {
    std::uint32_t size = 0;
    std::uint32_t lowest = 0, highest = 0;
    double expected = 0, most = 0;  // candidates of the row that pass: the mean, and six standard deviations above it
};

// For the k smallest of `columns`, sampled at `size` places (less than a tenth of the columns). The number of sampled
// keys among the k smallest has about a Poisson distribution. A threshold at five deviations above its mean keeps fewer
// than k candidates once in a million rows, and such a row is read again. Neighbouring columns are often alike (rows of
// a table in some order) and sectors are taken whole, so a small mean gets a larger variance than Poisson's.
inline SampleRank sample_rank(std::int64_t columns, std::int64_t k, std::uint32_t size)
{
    SampleRank rank;
    rank.size = size;
    const double n = static_cast<double>(columns), share = std::min(1.0, static_cast<double>(k) / n);
    const double mean = size * share, clustered = std::max(0.0, std::min(3 * mean, 8 - mean / 2));
    const double deviation = std::sqrt(mean * (1 - share) + clustered);
    const double lowest = std::ceil(mean + 5 * deviation + 4 / (1 + mean / 8));
    const double highest = lowest + std::max(1.0, std::floor(lowest / 24));
    if (highest < 0.9 * size) {
        rank.lowest = static_cast<std::uint32_t>(lowest);
        rank.highest = static_cast<std::uint32_t>(highest);
    }
    rank.expected = rank.lowest == 0 ? n : n / size * highest;
    rank.most = std::min(n, rank.expected + n / size * 6 * std::sqrt(highest));
    return rank;
}

// The sector, of `whole` sectors of row `row`, that is read for part `part` of `parts`. It differs by row, so that no
// pattern of columns misleads the samples of all rows.
__host__ __device__ inline std::uint32_t sampled_sector(std::uint32_t row, std::uint32_t part, std::uint32_t parts,
                                                        std::uint32_t whole)
{
    std::uint32_t hash = part + row * 0x9e3779b9u;
    hash = (hash ^ (hash >> 16)) * 0x7feb352du;
    hash = (hash ^ (hash >> 15)) * 0x846ca68bu;
    hash ^= hash >> 16;
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{part} * whole / parts);
    const auto end = static_cast<std::uint32_t>((std::uint64_t{part} + 1) * whole / parts);
    return begin + hash % (end - begin);
}

// Called by all threads; reads threads * 8 * sectors scores. number: distinguishes the rows.
template <int threads, int sectors, bool with_ids>
__device__ SelectKey sample_threshold(const RowSpan<with_ids>& row, std::uint32_t number, const SampleRank& rank,
                                      RankShared& shared)
{
    float scores[8 * sectors];
    std::uint32_t places[sectors];
    const std::uint32_t whole = row.whole_sectors();
#pragma unroll
    for (int i = 0; i < sectors; i++) {
        const std::uint32_t sector =
            row.first_whole_sector() + sampled_sector(number, i * threads + threadIdx.x, threads * sectors, whole);
        const float4 low = row.load_inside(2 * sector), high = row.load_inside(2 * sector + 1);
        const float loaded[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int j = 0; j < 8; j++) scores[8 * i + j] = loaded[j];
        places[i] = 8 * sector;
    }
    const RankBound found = find_rank<threads>(shared, rank.lowest, rank.highest, [&](auto visit) {
#pragma unroll
        for (int i = 0; i < 8 * sectors; i++)
            if (scores[i] <= FLT_MAX) visit(make_key(scores[i], row.id(places[i / 8] + i % 8)));
    });
    return found.bound;
}

}  // namespace pgwarp::cuda
