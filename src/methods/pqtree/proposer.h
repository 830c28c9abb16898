// The proposing stage: the tree, the lists of its bins, and line codes, without stored vectors. Searchers rank its
// proposals; calibrations count the true neighbours among these.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "methods/method.h"
#include "methods/pqtree/build_arrays.h"
#include "methods/pqtree/pqtree.h"
#include "numeric/top_k.h"

namespace pgwarp
{

class TreeProposer
{
public:
    virtual ~TreeProposer() = default;
    // proposed[q]: of each query [count][dimensions] the plan.ranked best by line codes, in ascending order of (score,
    // row), among the rows of the nearest bins. Bins are taken whole, nearest first, until they hold plan.candidates
    // live rows, so there may be a few more candidates than that; where these rows lie in too many bins, all live rows
    // are candidates. Scores are those of lines.h: for l2 and cosine the squared distance to the decoded point, for
    // inner product its negative inner product. Fewer where the width does not lead to as many rows. Thread-safe,
    // const.
    virtual void propose(std::span<const float> queries, const SearchPlan& plan, RowBitmap dead,
                         std::vector<std::vector<Candidate>>& proposed, ThreadPool& pool,
                         const CancelToken* cancel) const = 0;
    virtual std::uint64_t memory_bytes() const = 0;
    // The number of bins that all searches so far have visited on the CPU, the empty ones too.
    virtual std::uint64_t bins_visited() const { return 0; }
};

// The proposer of the CPU, which holds the codes of all rows in the order of bins.
class CpuTreeProposer : public TreeProposer
{
public:
    // The row at a position, in [0, rows), of that order.
    virtual std::uint32_t row_at(std::size_t position) const = 0;
    // Writes the line code (lines.h) of the row at a position.
    virtual void read_line_code(std::size_t position, std::uint8_t* out) const = 0;
};

// `codes` [rows][options.code_bytes()] is copied.
std::unique_ptr<CpuTreeProposer> make_cpu_proposer(Metric metric, const TreeOptions& options, const ProductTree& tree,
                                                   const LineTable& lines, std::span<const std::uint8_t> codes,
                                                   ThreadPool& pool);

}  // namespace pgwarp
