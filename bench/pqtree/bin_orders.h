// Orders of bins beside that of searches (methods/pqtree/bin_order.h): the exact order, by which tests and figure 3
// measure the others, and the order of the paper.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "methods/pqtree/bin_order.h"

namespace pgwarp::bench::pqtree
{

// A bin by the ranks of its leaves; ranks of parts that do not exist are 0.
using BinRanks = std::array<std::uint16_t, most_tree_parts>;

// Returns the first `wanted` bins in ascending order of (score in float64, ranks compared from the first part on), by a
// priority queue over the neighbours of bins visited (Babenko and Lempitsky, 2012).
std::vector<BinRanks> dijkstra_order(const RankedParts& parts, std::size_t wanted);

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

}  // namespace pgwarp::bench::pqtree
