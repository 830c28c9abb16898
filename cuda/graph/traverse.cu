#include "graph/traverse.h"

#include "graph/traverse_block.cuh"

namespace pgwarp::cuda::graph
{

void traverse(const TraverseJob& job, cudaStream_t stream)
{
    for (std::uint32_t first = 0; first < job.count; first += job.shape.launch_queries) {
        const std::uint32_t count = std::min(job.shape.launch_queries, job.count - first);
        if (!job.shape.plain() || job.shape.lanes <= 32) {
            traverse_by_options(job, first, count, stream);
        } else if (job.shape.exclusive) {
            job.shape.wide() ? traverse_exclusive_wide(job, first, count, stream)
                             : traverse_exclusive(job, first, count, stream);
        } else {
            job.shape.wide() ? traverse_by_blocks<false, true>(job, first, count, stream)
                             : traverse_by_blocks<false, false>(job, first, count, stream);
        }
    }
}

}  // namespace pgwarp::cuda::graph
