// One traversal by a cluster of blocks: the first goes through the graph, the others help it with scores, each reading
// located rows from its shared memory and writing their scores there. Same rows, same order, same teams: the same
// answer as by one group of threads.
#include <cooperative_groups.h>

#include "device/chained_launch.cuh"
#include "device/shared_memory.h"
#include "graph/traverse.h"
#include "graph/traverse_kernel.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

#if __CUDA_ARCH__ >= 900

namespace cg = cooperative_groups;

constexpr std::uint32_t no_more = 0xffffffff;

struct Gather {
    Entry* gathered;
    __device__ void operator()(std::uint32_t i, Entry entry) const
    {
        if (i != nowhere) gathered[i] = entry;
    }
};

// The leader's side of the scores: tells the others how many rows there are, does its share, waits for theirs.
template <class Own>
struct ClusterScores {
    Own own;
    std::uint32_t* located_count;
    Entry* gathered;

    template <class Take>
    __device__ void operator()(const std::uint32_t* located, std::uint32_t count, const Take& take) const
    {
        if (threadIdx.x == 0) *located_count = count;
        cg::this_cluster().sync();
        own(located, count, Gather{gathered});
        cg::this_cluster().sync();
        for (std::uint32_t base = 0; base < count; base += blockDim.x) {
            const std::uint32_t i = base + threadIdx.x;
            take(i < count ? i : nowhere, i < count ? gathered[i] : no_entry);
        }
    }
};

template <ScoreKind kind>
__device__ void lead(const TraverseArguments& arguments, const DeviceGroup& group, const Teams& teams,
                     unsigned char* shared, std::uint32_t* located_count, std::uint32_t query)
{
    const SearchShape& shape = arguments.shape;
    const SharedMemory memory(shared, arguments.layout);
    const auto own = scores_of<kind>(group, teams, arguments, shared + arguments.layout.query);
    const ClusterScores<decltype(own)> scores{own, located_count, memory.gathered()};
    using Visited = VisitedHash<DeviceGroup>;
    Visited visited(group, reinterpret_cast<std::uint32_t*>(shared + arguments.layout.visited), shape.visited_bits);
    visited.clear();
    Traversal<DeviceGroup, SharedMemory, Visited, decltype(scores)> traversal(group, shape.traversal, memory, visited,
                                                                              scores);
    TraversalStarts starts = starts_of(arguments, query);
    starts.all_rows = false;  // the others read rows from this block's memory
    const TraversalCounts work = traversal.run(starts, arguments.view.neighbours);
    if (threadIdx.x == 0) *located_count = no_more;
    cg::this_cluster().sync();
    write_found(group, arguments, traversal.found(), query, work);
}

template <ScoreKind kind>
__device__ void help(const TraverseArguments& arguments, const DeviceGroup& group, const Teams& teams,
                     unsigned char* shared, std::uint32_t* located_count)
{
    const auto cluster = cg::this_cluster();
    const auto own = scores_of<kind>(group, teams, arguments, shared + arguments.layout.query);
    const SharedMemory memory(shared, arguments.layout);
    const std::uint32_t* leaders_count = cluster.map_shared_rank(located_count, 0);
    const std::uint32_t* located = cluster.map_shared_rank(memory.rows(), 0);
    Entry* gathered = cluster.map_shared_rank(memory.gathered(), 0);
    for (;;) {
        cluster.sync();
        const std::uint32_t count = *static_cast<const volatile std::uint32_t*>(leaders_count);
        if (count == no_more) return;
        own(located, count, Gather{gathered});
        cluster.sync();
    }
}

#endif

template <ScoreKind kind>
__global__ __launch_bounds__(512) void traverse_cluster_kernel(const __grid_constant__ TraverseArguments arguments)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ uint4 shared_memory[];
    wait_for_kernel_before();
    const auto cluster = cg::this_cluster();
    const DeviceGroup group(arguments.shape.lanes);
    const std::uint32_t query = blockIdx.x / arguments.shape.cluster;
    auto* shared = reinterpret_cast<unsigned char*>(shared_memory);
    auto* located_count = reinterpret_cast<std::uint32_t*>(shared + arguments.layout.counters) + cluster_counter;
    Teams teams = teams_of(group, arguments.shape.team);
    teams.own += cluster.block_rank() * teams.count;
    teams.count *= cluster.num_blocks();
    bring_query(group, arguments, query);
    group.sync();
    stage_query(group, arguments, query, shared + arguments.layout.query);
    if (cluster.block_rank() == 0) {
        lead<kind>(arguments, group, teams, shared, located_count, query);
    } else {
        help<kind>(arguments, group, teams, shared, located_count);
    }
    // The leader's memory stays until all have read that there is no more.
    cluster.sync();
#endif
}

template <ScoreKind kind>
void launch(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    const SearchShape& shape = job.shape;
    allow_shared_memory(traverse_cluster_kernel<kind>, SharedMemoryUse::before_caches);
    launch_clusters(shape.cluster, job.chained, traverse_cluster_kernel<kind>, count * shape.cluster,
                    shape.block_threads(), shape.shared_bytes, stream, "going through the graph by clusters",
                    arguments_of(job, first, count));
}

}  // namespace

void traverse_by_clusters(const TraverseJob& job, std::uint32_t first, std::uint32_t count, cudaStream_t stream)
{
    with_score_kind(*job.view, [&]<ScoreKind kind>() {
        // Bits are so short that one block reads them fast enough.
        if constexpr (kind != ScoreKind::bits) launch<kind>(job, first, count, stream);
    });
}

}  // namespace pgwarp::cuda::graph
