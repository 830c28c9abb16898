// A search by several groups of threads. The first group traverses the graph and publishes the rows to expand. Every
// group scores its part of their links and writes the scores to the first group's memory. Free of CUDA.
//
// A BlockCluster has, for each of its groups,
//   shares        true: Traversal::run() works with other groups
//   size(), own() the number of groups of the block cluster, and the number of the calling one
//   shares_scores() whether the groups share the scores of each turn, or only the scores of the starts
//   leader()      the Memory of the first group, in the address space of the calling one
//   begin()       arrive() of a group that has not yet written memory that other groups read
//   arrive(), wait()  called in turn by all threads: wait() returns after all groups have arrived, and then memory that
//                     was written before their arrival is visible
#pragma once

#include <cstdint>

#include "graph/traversal_shape.h"

namespace pgwarp::cuda::graph
{

// The task of a turn, which the first group publishes in its memory.
struct ClusterTask {
    std::uint32_t parents = 0;         // rows to expand; 0: the search has ended
    std::uint32_t rows[most_steps]{};  // the rows whose links are scored
};

// The block cluster of a search by a single group.
struct NoBlockCluster {
    static constexpr bool shares = false;
    static constexpr bool shares_scores() { return false; }
};

struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    PGWARP_HOST_DEVICE std::uint32_t size() const { return end - begin; }
};

// The calling group's part of `count` pieces of work.
template <class BlockCluster>
PGWARP_HOST_DEVICE inline Part part_of(const BlockCluster& block_cluster, std::uint32_t count)
{
    const std::uint32_t each = (count + block_cluster.size() - 1) / block_cluster.size();
    const std::uint32_t begin = block_cluster.own() * each < count ? block_cluster.own() * each : count;
    return {begin, begin + each < count ? begin + each : count};
}

template <class BlockCluster>
PGWARP_HOST_DEVICE inline void meet(const BlockCluster& block_cluster)
{
    block_cluster.arrive();
    block_cluster.wait();
}

}  // namespace pgwarp::cuda::graph
