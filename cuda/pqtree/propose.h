// The proposing stage on the device: descent, bins and line codes, one block for each query. Where queries are few,
// several blocks make the same steps for a query and share only its candidates.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "pqtree/layout.h"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

inline constexpr std::uint32_t most_blocks = 8;  // of a query; more of them gather more keys, which takes longer

// The numbers of a search that are the same for all its queries.
struct ProposePlan {
    std::uint32_t width = 1;        // centroids of the first level, a part, whose leaves are compared
    std::uint32_t candidates = 1;   // rows that line codes rank, dead ones included
    std::uint32_t wanted = 1;       // rows that are proposed, <= most_proposed
    std::uint32_t first_pairs = 1;  // bins of the first shell
    std::uint32_t blocks = 1;       // of a query
    bool ordered = true;            // the best `wanted` come in order; else in any order
    std::size_t shared_bytes = 0;   // the most of a block
    BlockShape shape;
    BlockLayout layout;

    // Keys of a block in the output.
    PGWARP_HOST_DEVICE std::uint32_t stride() const { return blocks > 1 ? kept_of(wanted) : wanted; }
};

// Plans a search by the shape of the tree: width * k2 <= most_ranks is enforced, and the layout fits into shared_bytes.
// rows: of the index. blocks: of a query; a single one where proposals come in order. ordered: the caller needs the
// proposals in order; they also come in order where bins are hashed. Returns false where no layout fits.
bool plan_proposals(const TreeView& tree, const BinSlots& slots, std::uint64_t rows, std::size_t width,
                    std::size_t candidates, std::size_t wanted, std::uint32_t blocks, bool ordered,
                    std::size_t shared_bytes, ProposePlan& plan);

// Blocks of batches that a multiprocessor runs at a time. Throws CudaError.
std::size_t resident_blocks(const ProposePlan& plan);

// The memory that propose() writes, on the device. Where a query has several blocks, each proposes the best of its
// share, and the best `wanted` are among them.
struct Proposals {
    unsigned long long* keys = nullptr;  // [count][plan.blocks][plan.stride()]: make_key(score, position)
    std::uint32_t* counts = nullptr;     // [count][plan.blocks]: valid keys of a block
    float* queries = nullptr;            // [count][dimensions]: a copy of queries in page-locked memory, or null

    // The memory of the queries from `first` on.
    Proposals from(std::size_t first, const ProposePlan& plan, std::size_t dimensions) const
    {
        return {keys + first * plan.blocks * plan.stride(), counts + first * plan.blocks,
                queries != nullptr ? queries + first * dimensions : nullptr};
    }
};

// Proposes the best rows of each query by line codes. queries [count][dimensions] may lie in page-locked host memory.
// dead: one bit for each position, or null. A few queries get large blocks. Asynchronous. Throws CudaError.
void propose(const MirrorView& mirror, const float* queries, std::uint32_t count, const ProposePlan& plan,
             const std::uint32_t* dead, const Proposals& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::pqtree
