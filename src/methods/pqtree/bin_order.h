// The order in which a search visits bins (Wieschollek et al., 2016, section 3.2). Each part has a list of leaves in
// ascending order of their scores; the score of a bin is the sum of the scores of its leaves.
//
// Three forms of the order:
// - nearest_bins(): the nearest bins as a set, cut at a threshold. It is what searches use: the set is that of the
// exact
//   order, every step is data-parallel, and it costs no more than a precomputed order, because rows are ranked again
//   and so the order within the set does not matter.
// - SlopeOrder: the order of the paper, precomputed for pairs of ranks and ten slopes, one of which fits a query.
// - dijkstra_order(): the exact order by a priority queue in float64, the reference of both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "methods/pqtree/tree.h"

namespace pgwarp
{

// A leaf of a part, with its score for a query: smaller is nearer (squared L2, or the negative inner product). Sums of
// scores, and their differences, are finite.
struct RankedLeaf {
    float score;
    std::uint32_t leaf;
};

// The leaves of each part in ascending order of (score, leaf).
using RankedParts = std::vector<std::vector<RankedLeaf>>;

// A bin by the ranks of its leaves; ranks of parts that do not exist are 0.
using BinRanks = std::array<std::uint16_t, most_tree_parts>;

// Bins that differ in the last part alone: those with its leaves of the ranks [0, end).
struct BinRun {
    float score;          // of the leaves of the other parts
    std::uint32_t end;    // > 0
    std::uint64_t first;  // the bin with leaf 0 of the last part
};

struct NearestBins {
    std::vector<BinRun> runs;
    std::size_t count = 0;  // of bins
    float farthest = 0;     // no bin scores more
};

// Returns the first `wanted` bins in ascending order of (score in float64, ranks compared from the first part on), by a
// priority queue over the neighbours of bins visited (Babenko and Lempitsky, 2012).
std::vector<BinRanks> dijkstra_order(const RankedParts& parts, std::size_t wanted);

// Finds the bins with the smallest scores: at least `least` and at most `most` of them, or all where there are fewer.
// Where equal scores leave no number between, `least` of them, those of smaller ranks first. A wider interval takes
// fewer steps. Scores are sums in float, part after part. `leaves_of_part`: k1 * k2.
void nearest_bins(const RankedParts& parts, std::size_t leaves_of_part, std::size_t least, std::size_t most,
                  NearestBins& bins);

// The orders of pairs of ranks for ten slopes 1.08^-5 ... 1.08^4. With slope s, pairs (i, j) come in ascending order of
// sqrt(i) / s + sqrt(j) s, ties by i: a slope below 1 goes deeper into the second part. Scores grow about as the root
// of the rank. SIFT, 64 x 16 leaves, 200 queries, the share of the exact order's first bins among as many of this
// order, and of the order by i^2 + j^2: .86 and .66 for 100 bins, .87 and .67 for 1,000, .87 and .68 for 4,000.
class SlopeOrder
{
public:
    static constexpr std::size_t slopes = 10;
    using Pair = std::pair<std::uint16_t, std::uint16_t>;

    // The first `length` pairs of ranks below `ranks`.
    SlopeOrder(std::size_t ranks, std::size_t length);

    static double slope(std::size_t number);
    std::span<const Pair> order(std::size_t number) const { return orders_[number]; }
    // Returns the number of the slope that fits the growth of the scores of two parts.
    static std::size_t choose(std::span<const RankedLeaf> first, std::span<const RankedLeaf> second);

private:
    std::array<std::vector<Pair>, slopes> orders_;
};

}  // namespace pgwarp
