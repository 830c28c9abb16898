// Traversals with SONG's options: Bloom and Cuckoo filters, selected insertion, deletion of visited rows, queries of a
// warp or less. They serve experiments, so one kernel for each kind of score chooses at run time.
#include "device/error.h"
#include "device/shared_memory.h"
#include "graph/traverse.h"
#include "graph/traverse_kernel.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

template <ScoreKind kind>
__global__ __launch_bounds__(512) void traverse_options_kernel(const __grid_constant__ TraverseArguments arguments)
{
    extern __shared__ uint4 shared_memory[];
    const std::uint32_t lanes = arguments.shape.lanes;
    const std::uint32_t group = threadIdx.x / lanes;
    const std::uint32_t query = blockIdx.x * arguments.shape.groups + group;
    if (query >= arguments.count) return;
    const DeviceGroup own(lanes);
    auto* shared = reinterpret_cast<unsigned char*>(shared_memory) + group * arguments.layout.end;
    switch (arguments.shape.visited) {
        case VisitedKind::hash:
            return traverse_query<kind, VisitedHash>(arguments, own, shared, query);
        case VisitedKind::bloom:
            return traverse_query<kind, VisitedBloom>(arguments, own, shared, query);
        case VisitedKind::cuckoo:
            return traverse_query<kind, VisitedCuckoo>(arguments, own, shared, query);
    }
}

template <ScoreKind kind>
void launch(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    const LaunchConfig& shape = job.shape;
    allow_shared_memory(traverse_options_kernel<kind>, SharedMemoryUse::before_caches);
    const std::uint32_t blocks = (count + shape.groups - 1) / shape.groups;
    traverse_options_kernel<kind>
        <<<blocks, shape.block_threads(), shape.shared_bytes, stream>>>(arguments_of(job, first, count));
    check_launch("going through the graph");
}

}  // namespace

void traverse_by_options(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    with_score_kind(*job.view, [&]<ScoreKind kind>() { launch<kind>(job, first, count, stream); });
}

}  // namespace pgwarp::cuda::graph
