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
    // Those of a warp that come together go as one.
    __device__ void lower(std::uint32_t* word, std::uint32_t value) const
    {
#if __CUDA_ARCH__ >= 800
        const std::uint32_t together = __activemask() & warp_mask_;
        const std::uint32_t least = __reduce_min_sync(together, value);
        if (static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(together)) - 1) atomicMin(word, least);
#else
        atomicMin(word, value);
#endif
    }
    __device__ std::uint32_t compare_and_swap(std::uint32_t* word, std::uint32_t expected, std::uint32_t desired) const
    {
        return atomicCAS(word, expected, desired);
    }
    __device__ std::uint32_t set_bits(std::uint32_t* word, std::uint32_t bits) const
    {
        return atomicOr(word, bits);
    }

    __device__ void prefetch(const void* address) const
    {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
    }

    // The first warp of the group, or what there is of it.
    __device__ bool leads() const
    {
        return rank_ < 32;
    }
    __device__ std::uint32_t leaders() const
    {
        return lanes_ < 32 ? lanes_ : 32;
    }
    __device__ void sync_leaders() const
    {
        __syncwarp(warp_mask_);
    }

    __device__ std::uint32_t sharers(std::uint32_t items) const
    {
        // By exponents, that of the items rounded up.
        const int wanted = items > 1 ? 32 - __clz(static_cast<int>(items - 1)) : 0;
        const int lanes = 31 - __clz(static_cast<int>(lanes_));
        const int most = 31 - __clz(static_cast<int>(leaders()));
        return static_cast<std::uint32_t>(max(0, min(most, lanes - wanted)));
    }
    __device__ std::uint32_t add_up(std::uint32_t value, std::uint32_t sharers) const
    {
        for (std::uint32_t step = (1U << sharers) / 2; step > 0; step /= 2) {
            value += __shfl_xor_sync(warp_mask_, value, static_cast<int>(step));
        }
        return value;
    }

    // By those that lead; all of them get the number.
    template <class Matches>
    __device__ std::uint32_t first_matches(std::uint32_t begin, std::uint32_t end, std::uint32_t most,
                                           const Matches& matches, std::uint32_t* out) const
    {
        const std::uint32_t width = leaders();
        const std::uint32_t first_lane = threadIdx.x % 32 & ~(width - 1);
        std::uint32_t found = 0;
        for (std::uint32_t base = begin; base < end && found < most; base += width) {
            const std::uint32_t i = base + rank_;
            const bool own = i < end && matches(i);
            const std::uint32_t all = (__ballot_sync(warp_mask_, own) & warp_mask_) >> first_lane;
            const std::uint32_t place = found + __popc(all & ((1U << rank_) - 1));
            if (own && place < most) out[place] = i;
            found += __popc(all);
        }
        return found < most ? found : most;
    }

private:
    std::uint32_t lanes_;
    std::uint32_t rank_;
    std::uint32_t warp_mask_;
};

}  // namespace pgwarp::cuda::graph
