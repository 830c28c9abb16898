// The kernels for few queries, whose blocks have a multiprocessor each, without wide turns. A separate file, as they
// take long to compile.
#include "graph/traverse.h"
#include "graph/traverse_block.cuh"

namespace pgwarp::cuda::graph
{

void traverse_exclusive(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    traverse_by_blocks<true, false>(job, first, count, stream);
}

}  // namespace pgwarp::cuda::graph
