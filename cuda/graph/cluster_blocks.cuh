// The BlockCluster (block_cluster.h) of the thread blocks of a cluster that search for one query, from sm_90 on.
// Elsewhere a query has a single block.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "graph/block_cluster.h"
#include "graph/shared_memory.cuh"

namespace pgwarp::cuda::graph
{

#if __CUDA_ARCH__ >= 900

class ClusterBlocks
{
public:
    static constexpr bool shares = true;

    // shared: the calling block's memory. The layout is the same in all blocks.
    __device__ ClusterBlocks(std::uint32_t size, bool shares_scores, unsigned char* shared, const SharedLayout& layout)
        : size_(size), shares_scores_(shares_scores), shared_(shared), layout_(layout)
    {
    }
    __device__ std::uint32_t size() const { return size_; }
    __device__ std::uint32_t own() const { return size_ == 1 ? 0 : cluster().block_rank(); }
    __device__ bool shares_scores() const { return shares_scores_; }
    __device__ SharedMemory leader() const { return {cluster().map_shared_rank(shared_, 0), layout_}; }
    __device__ static void begin() { asm volatile("barrier.cluster.arrive.relaxed.aligned;"); }
    __device__ void arrive() const { cluster().barrier_arrive(); }
    __device__ void wait() const { cluster().barrier_wait(); }

private:
    __device__ static cooperative_groups::cluster_group cluster() { return cooperative_groups::this_cluster(); }

    std::uint32_t size_;
    bool shares_scores_;
    unsigned char* shared_;
    const SharedLayout& layout_;
};

#else

struct ClusterBlocks : NoBlockCluster {
    __device__ ClusterBlocks(std::uint32_t, bool, unsigned char*, const SharedLayout&) {}
    __device__ static std::uint32_t own() { return 0; }
    __device__ static void wait() {}
};

#endif

}  // namespace pgwarp::cuda::graph
