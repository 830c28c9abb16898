#include "graph/traverse.h"

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "graph/traverse_kernel.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

// `wide`: turns of more rows than are expanded together, and others that help.
//
// What comes with a launch: nothing where there are many queries.
template <bool alone>
struct Given {
    __device__ const GivenQuery* query() const { return nullptr; }
};
template <>
struct Given<true> {
    GivenQuery own;
    __device__ const GivenQuery* query() const { return &own; }
};

Given<true> given_to(const TraverseJob& job)
{
    Given<true> given;
    const std::uint32_t dimensions = job.view->vectors.dimensions;
    if (job.given == nullptr || job.count > 1 || dimensions > GivenQuery::most) return given;
    given.own.dimensions = dimensions;
    std::copy_n(job.given, dimensions, given.own.values);
    return given;
}

// At most 64 registers: a multiprocessor has room for 32 blocks of a warp, which are as many as it takes. `alone`:
// twice as many, for a block that has it to itself.
template <ScoreKind kind, bool alone, bool wide>
__global__ __launch_bounds__(512,
                             alone ? 1 : 2) void traverse_kernel(const __grid_constant__ TraverseArguments arguments,
                                                                 const __grid_constant__ Given<alone> given)
{
    extern __shared__ uint4 shared_memory[];
    if (!arguments.beside) wait_for_kernel_before();
    let_next_start();
    const std::uint32_t query = alone ? blockIdx.x / arguments.shape.cluster : blockIdx.x;
    traverse_query<kind, VisitedHash, wide>(arguments, BlockGroup<alone>(),
                                            reinterpret_cast<unsigned char*>(shared_memory), query, given.query());
    // What follows waits for this launch, and so for those that it runs beside.
    if (arguments.beside && blockIdx.x == gridDim.x - 1) wait_for_kernel_before();
}

template <ScoreKind kind, bool alone, bool wide>
void launch(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    const SearchShape& shape = job.shape;
    allow_shared_memory(traverse_kernel<kind, alone, wide>, SharedMemoryUse::before_caches);
    Given<alone> given;
    if constexpr (alone) given = given_to(job);
    launch_clusters(shape.cluster, job.chained || first > 0, traverse_kernel<kind, alone, wide>, count * shape.cluster,
                    shape.block_threads(), shape.shared_bytes, stream, "going through the graph",
                    arguments_of(job, first, count), given);
}

void traverse_plainly(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    with_score_kind(*job.view, [&]<ScoreKind kind>() {
        const bool wide = job.shape.traversal.steps > job.shape.traversal.together() || job.shape.helps;
        if (job.shape.alone && wide) return launch<kind, true, true>(job, first, count, stream);
        if (job.shape.alone) return launch<kind, true, false>(job, first, count, stream);
        if (wide) return launch<kind, false, true>(job, first, count, stream);
        launch<kind, false, false>(job, first, count, stream);
    });
}

}  // namespace

void traverse(const TraverseJob& job, cudaStream_t stream)
{
    for (std::uint32_t first = 0; first < job.count; first += job.shape.launch_queries) {
        const std::uint32_t count = std::min(job.shape.launch_queries, job.count - first);
        if (!job.shape.plain() || job.shape.lanes <= 32) {
            traverse_by_options(job, first, count, stream);
        } else {
            traverse_plainly(job, first, count, stream);
        }
    }
}

}  // namespace pgwarp::cuda::graph
