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

// The numbers of a search that are the same for all its queries.
struct ProposePlan {
    std::uint32_t width = 1;        // centroids of the first level, a part, whose leaves are compared
    std::uint32_t candidates = 1;   // rows that line codes rank, dead ones included
    std::uint32_t wanted = 1;       // rows that are proposed, <= most_proposed
    std::uint32_t first_pairs = 1;  // bins of the first shell
    bool ordered = true;            // the best `wanted` in order; else the best kept_of(wanted) at most, in any order
    BlockShape shape;
    BlockLayout layout;

    // Keys of a query in the output.
    PGWARP_HOST_DEVICE std::uint32_t stride() const { return ordered ? wanted : kept_of(wanted); }
};

// Plans a search by the shape of the tree: width * k2 <= most_ranks is enforced, and the layout fits into shared_bytes.
// rows: of the index. blocks: of a query, a power of two; 1 where the device has no clusters, or no room for the keys
// of so many. ordered: the caller needs the proposals in order; they also come in order where bins are hashed. Returns
// false where no layout fits.
bool plan_proposals(const TreeView& tree, const BinSlots& slots, std::uint64_t rows, std::size_t width,
                    std::size_t candidates, std::size_t wanted, std::uint32_t blocks, bool ordered,
                    std::size_t shared_bytes, ProposePlan& plan);

// The memory that propose() writes, on the device.
struct Proposals {
    unsigned long long* keys = nullptr;  // [count][plan.stride()]: make_key(score, position)
    std::uint32_t* counts = nullptr;     // [count]: valid keys of a query
    float* queries = nullptr;            // [count][dimensions]: a copy of the queries, or null

    // The memory of the queries from `first` on.
    Proposals from(std::size_t first, std::size_t stride, std::size_t dimensions) const
    {
        return {keys + first * stride, counts + first, queries != nullptr ? queries + first * dimensions : nullptr};
    }
};

// Proposes the best rows of each query by line codes. queries [count][dimensions] may lie in page-locked host memory.
// dead: one bit for each position, or null. A few queries get large blocks. Asynchronous. Throws CudaError.
void propose(const MirrorView& mirror, const float* queries, std::uint32_t count, const ProposePlan& plan,
             const std::uint32_t* dead, const Proposals& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::pqtree
