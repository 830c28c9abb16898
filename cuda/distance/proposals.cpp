#include "distance/proposals.h"

namespace pgwarp::cuda
{

void propose(Context& context, const ProposalJob& job, cudaStream_t stream)
{
    constexpr std::uint32_t few_queries = 8;  // up to which reading the rows anew for each four costs less than a tile
    const ScoreKind kind = job.rows->bounds.kind;
    if (kind == ScoreKind::float_l1 && job.queries.count > few_queries) {
        return propose_by_l1_tiles(context, job, stream);
    }
    const bool half = kind == ScoreKind::half_l2 || kind == ScoreKind::half_dot;
    const bool adds = job.added.values != nullptr;
    const bool by_tiles = adds || job.masks.words != nullptr;
    if (!half || (job.queries.count <= streamed_queries && !by_tiles))
        return propose_by_streaming(context, job, stream);
    constexpr std::uint32_t most_added = 256;  // dimensions up to which warp groups add bytes
    const bool by_groups = !adds || job.rows->padded_dimensions <= most_added;
    if (by_groups && warp_groups_available(context, job.rows->padded_dimensions)) {
        return propose_by_warp_groups(context, job, stream);
    }
    propose_portably(context, job, stream);
}

}  // namespace pgwarp::cuda
