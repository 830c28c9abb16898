// Traversals by a block, or a cluster of blocks, for each query: the kernel and its launch. exclusive: a block has a
// multiprocessor to itself. wide: turns may have more rows than are expanded together, and blocks of a cluster may
// share scores.
#pragma once

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "graph/traverse_kernel.cuh"

namespace pgwarp::cuda::graph
{

// A query in the kernel's parameters; empty for many queries.
template <bool exclusive>
struct Given {
    __device__ const GivenQuery* query() const { return nullptr; }
};
template <>
struct Given<true> {
    GivenQuery own;
    __device__ const GivenQuery* query() const { return &own; }
};

inline Given<true> given_to(const TraverseJob& job)
{
    Given<true> given;
    const std::uint32_t dimensions = job.view->vectors.dimensions;
    if (job.given == nullptr || job.count > 1 || dimensions > GivenQuery::most) return given;
    given.own.dimensions = dimensions;
    std::copy_n(job.given, dimensions, given.own.values);
    return given;
}

// At most 64 registers, so that a multiprocessor can hold 32 blocks of a warp, its limit. With `exclusive`, at most
// 128.
template <ScoreKind kind, bool exclusive, bool wide>
__global__ __launch_bounds__(512, exclusive ? 1 : 2) void traverse_kernel(
    const __grid_constant__ TraverseArguments arguments, const __grid_constant__ Given<exclusive> given)
{
    extern __shared__ uint4 shared_memory[];
    if (!arguments.beside) wait_for_kernel_before();
    let_next_start();
    const std::uint32_t query = exclusive ? blockIdx.x / arguments.shape.cluster : blockIdx.x;
    traverse_query<kind, VisitedHash, wide>(arguments, BlockGroup<exclusive>(),
                                            reinterpret_cast<unsigned char*>(shared_memory), query, given.query());
    // The next kernel waits for this launch only, so this launch waits for the earlier ones.
    if (arguments.beside && blockIdx.x == gridDim.x - 1) wait_for_kernel_before();
}

template <ScoreKind kind, bool exclusive, bool wide>
void launch_blocks(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    const LaunchConfig& shape = job.shape;
    allow_shared_memory(traverse_kernel<kind, exclusive, wide>, SharedMemoryUse::before_caches);
    Given<exclusive> given;
    if constexpr (exclusive) given = given_to(job);
    launch_clusters(shape.cluster, job.chained || first > 0, traverse_kernel<kind, exclusive, wide>,
                    count * shape.cluster, shape.block_threads(), shape.shared_bytes, stream, "going through the graph",
                    arguments_of(job, first, count), given);
}

template <bool exclusive, bool wide>
void traverse_by_blocks(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    with_score_kind(*job.view,
                    [&]<ScoreKind kind>() { launch_blocks<kind, exclusive, wide>(job, first, count, stream); });
}

}  // namespace pgwarp::cuda::graph
