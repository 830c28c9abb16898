// The arrays of a search in a block's shared memory.
#pragma once

#include <cstdint>

#include "graph/block_cluster.h"
#include "graph/launch_config.h"

namespace pgwarp::cuda::graph
{

// The Memory of a search (queue.h). layout must outlive it.
class SharedMemory
{
public:
    __device__ SharedMemory(unsigned char* begin, const SharedLayout& layout) : begin_(begin), layout_(layout) {}
    __device__ Entry* entries(std::uint32_t side) const { return at<Entry>(layout_.entries) + side * layout_.length; }
    __device__ Entry* kept() const { return at<Entry>(layout_.kept); }
    __device__ Entry* gathered() const { return at<Entry>(layout_.gathered); }
    __device__ ClusterTask* task() const { return at<ClusterTask>(layout_.task); }
    // After both halves of the queue.
    __device__ Entry* first() const { return entries(2); }
    __device__ std::uint32_t* counters() const { return at<std::uint32_t>(layout_.counters); }
    __device__ std::uint32_t* rows() const { return at<std::uint32_t>(layout_.rows); }
    __device__ std::uint32_t* parents(std::uint32_t warp) const
    {
        return at<std::uint32_t>(layout_.parents) + warp * layout_.places;
    }
    __device__ std::uint32_t* again() const { return at<std::uint32_t>(layout_.again); }

private:
    template <class T>
    __device__ T* at(std::uint32_t offset) const
    {
        return reinterpret_cast<T*>(begin_ + offset);
    }
    unsigned char* begin_;
    const SharedLayout& layout_;
};

}  // namespace pgwarp::cuda::graph
