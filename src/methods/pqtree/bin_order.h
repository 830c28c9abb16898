// The order in which a search visits bins (Wieschollek et al., 2016, section 3.2). Each part has a list of leaves in
// ascending order of their scores; the score of a bin is the sum of the scores of its leaves.
//
// nearest_bins() finds the first bins of the exact order as a set, by a threshold of the score: its steps are
// data-parallel, and it takes no longer than a precomputed order. The order within the set does not matter, because
// rows are ranked again. bench/pqtree/bin_orders.h has the orders that it is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Finds the bins with the smallest scores: at least `least` and at most `most` of them, or all where there are fewer.
// Where equal scores leave no number between, `least` of them, those of smaller ranks first. A wider interval takes
// fewer steps. Scores are sums in float, part after part. `leaves_of_part`: k1 * k2.
void nearest_bins(const RankedParts& parts, std::size_t leaves_of_part, std::size_t least, std::size_t most,
                  NearestBins& bins);

}  // namespace pgwarp
