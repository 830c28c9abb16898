// The threads of one query on the device: part of a warp, a warp, or a block.
#pragma once

#include <cstdint>

namespace pgwarp::cuda::graph
{

class DeviceGroup
{
public:
    // `lanes`: a power of two from 8 on; from 64 on the whole block, below as many groups as fit in it.
    __device__ explicit DeviceGroup(std::uint32_t lanes)
        : lanes_(lanes),
          rank_(threadIdx.x & (lanes - 1)),
          warp_mask_(lanes >= 32 ? 0xffffffffU : ((1U << lanes) - 1) << (threadIdx.x % 32 & ~(lanes - 1)))
    {
    }
    __device__ std::uint32_t rank() const { return rank_; }
    __device__ std::uint32_t size() const { return lanes_; }
    // Those of the group's threads that are in the calling warp.
    __device__ std::uint32_t warp_mask() const { return warp_mask_; }

    __device__ void sync() const
    {
        if (lanes_ <= 32) {
            __syncwarp(warp_mask_);
        } else {
            __syncthreads();
        }
    }

    // Adds one; those of the group's threads that come together go as one.
    __device__ std::uint32_t count(std::uint32_t* word) const
    {
        const std::uint32_t together = __activemask() & warp_mask_;
        const std::uint32_t lane = threadIdx.x % 32;
        const int leader = __ffs(static_cast<int>(together)) - 1;
        std::uint32_t before = 0;
        if (static_cast<int>(lane) == leader) before = atomicAdd(word, static_cast<std::uint32_t>(__popc(together)));
        before = __shfl_sync(together, before, leader);
        return before + __popc(together & ((1U << lane) - 1));
    }
    // A word that others may write meanwhile.
    __device__ std::uint32_t load(const std::uint32_t* word) const
    {
        return *static_cast<const volatile std::uint32_t*>(word);
    }
    __device__ void store(std::uint32_t* word, std::uint32_t value) const
    {
        *static_cast<volatile std::uint32_t*>(word) = value;
    }
    __device__ std::uint32_t compare_and_swap(std::uint32_t* word, std::uint32_t expected, std::uint32_t desired) const
    {
        return atomicCAS(word, expected, desired);
    }
    __device__ std::uint32_t set_bits(std::uint32_t* word, std::uint32_t bits) const { return atomicOr(word, bits); }

    __device__ void prefetch(const void* address) const { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

    // Of a group of less than a warp, that part is its warp.
    __device__ std::uint32_t warp() const { return rank_ / 32; }
    template <class Matches>
    __device__ std::uint32_t first_matches(std::uint32_t begin, std::uint32_t end, std::uint32_t most,
                                           const Matches& matches, std::uint32_t* out) const
    {
        const std::uint32_t width = warp_size();
        const std::uint32_t lane = rank_ % 32;
        const std::uint32_t first_lane = threadIdx.x % 32 - lane;
        std::uint32_t found = 0;
        for (std::uint32_t base = begin; base < end && found < most; base += width) {
            const std::uint32_t i = base + lane;
            const bool own = i < end && matches(i);
            const std::uint32_t all = (__ballot_sync(warp_mask_, own) & warp_mask_) >> first_lane;
            const std::uint32_t place = found + __popc(all & ((1U << lane) - 1));
            if (own && place < most) out[place] = i;
            found += __popc(all);
        }
        __syncwarp(warp_mask_);
        return found < most ? found : most;
    }
    __device__ std::uint32_t warp_size() const { return lanes_ < 32 ? lanes_ : 32; }

private:
    std::uint32_t lanes_;
    std::uint32_t rank_;
    std::uint32_t warp_mask_;
};

}  // namespace pgwarp::cuda::graph
