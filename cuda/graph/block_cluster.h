// Several groups of threads at one search: the first goes through the graph and tells the others what comes next; each
// scores its part of it and writes the scores where the first gathers them. Free of CUDA.
//
// A BlockCluster has, for each of its groups,
//   shares        true: Traversal::run() reckons with others
//   size(), own() groups of the block cluster, and the number of the calling one
//   helps()       whether the others score the links of the rows that are expanded as well, not the starts alone
//   leader()      the Memory of the first group, as the calling one sees it
//   begin()       arrive() of a group that has written nothing yet that others read
//   arrive(), wait()  in turn, by all threads: none comes back from wait() before all have arrived, and what was
//                     written before that is seen
#pragma once

#include <cstdint>

#include "graph/traversal_shape.h"

namespace pgwarp::cuda::graph
{

// What the first group tells the others, in its memory.
struct ClusterTask {
    std::uint32_t parents = 0;         // 0: the search is at its end
    std::uint32_t rows[most_steps]{};  // whose links are to be scored
};

// The way of a group that is alone.
struct NoBlockCluster {
    static constexpr bool shares = false;
    static constexpr bool helps() { return false; }
};

struct Part {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    PGWARP_HOST_DEVICE std::uint32_t size() const { return end - begin; }
};

// Of `count` pieces of work, those of the calling group.
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
