// The choice of candidates on the CPU: the rows of the nearest bins, until there are enough.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "methods/pqtree/bin_lists.h"
#include "methods/pqtree/bin_order.h"

namespace pgwarp
{

// The leaves of each part that a query was compared with, as ordered keys of their scores (numeric/top_k.h).
using LeafKeys = std::vector<std::vector<std::uint64_t>>;

// Numbers that the searches of an index leave for later ones.
struct BinStatistics {
    std::atomic<float> bins_per_row{0.5F};       // of the last search
    std::atomic<std::uint64_t> bins_visited{0};  // by all searches, the empty ones too
};

// The memory of a thread's searches.
class BinChoice
{
public:
    // Lists the positions of the live rows of the nearest bins: whole bins in order of (score, slot), until they hold
    // `candidates` live rows, or all bins of these leaves. Reorders `leaves`. Returns false where the rows lie in more
    // bins than a search visits. Throws Cancelled.
    bool run(const BinLists& lists, std::size_t leaves_of_part, LeafKeys& leaves, std::size_t candidates,
             RowBitmap dead, const CancelToken* cancel, BinStatistics& statistics,
             std::vector<std::uint32_t>& positions);

private:
    struct FilledBin {
        float score;
        std::uint32_t begin;  // positions
        std::uint32_t end;
        std::uint32_t live;
    };

    void sort_leaves(LeafKeys& leaves);
    void order_bins(std::size_t leaves_of_part, LeafKeys& leaves, std::size_t wanted, std::size_t most);
    std::size_t visit_bins(const BinLists& lists, RowBitmap dead, const CancelToken* cancel);
    void list_nearest(const BinLists& lists, std::size_t candidates, RowBitmap dead,
                      std::vector<std::uint32_t>& positions);

    std::size_t ranks_ = 0;  // leaves of a part that are sorted, or all
    std::vector<std::uint32_t> rank_of_;
    RankedParts ranked_;
    NearestBins nearest_;
    std::vector<float> scores_;        // of bins whose slots have rows
    std::vector<std::uint64_t> bins_;  // of the same
    std::vector<FilledBin> filled_;
    std::vector<FilledBin> edge_;  // bins near the farthest that is taken
};

}  // namespace pgwarp
