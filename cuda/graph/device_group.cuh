// The Groups of traversal.h on the device: the threads of one query, which are a block, a warp, or part of one.
#pragma once

#include <cstdint>

namespace pgwarp::cuda::graph
{

// The operations common to all groups. Own has rank() and size(), and warp_mask(): the lanes of the calling warp that
// are in the group.
template <class Own>
class GroupOperations
{
public:
    __device__ std::uint32_t warp_size() const { return own().size() < 32 ? own().size() : 32; }
    // A group smaller than a warp counts as one warp.
    __device__ std::uint32_t warp() const { return own().rank() / 32; }
    __device__ std::uint32_t first_of_warp() const { return own().rank() & ~31U; }

    // Adds one for each thread with `asks` and returns the value before the thread's own addition. Called by all
    // threads of a warp.
    __device__ std::uint32_t count(std::uint32_t* word, bool asks) const
    {
        const std::uint32_t all = __ballot_sync(own().warp_mask(), asks);
        if (all == 0) return 0;
        const std::uint32_t lane = threadIdx.x % 32;
        const int first = __ffs(static_cast<int>(all)) - 1;
        std::uint32_t before = 0;
        if (static_cast<int>(lane) == first) before = atomicAdd(word, static_cast<std::uint32_t>(__popc(all)));
        return __shfl_sync(own().warp_mask(), before, first) + __popc(all & ((1U << lane) - 1));
    }
    // Reads a word that other threads may write at the same time.
    __device__ static std::uint32_t load(const std::uint32_t* word)
    {
        return *static_cast<const volatile std::uint32_t*>(word);
    }
    __device__ static void store(std::uint32_t* word, std::uint32_t value)
    {
        *static_cast<volatile std::uint32_t*>(word) = value;
    }
    __device__ static std::uint32_t compare_and_swap(std::uint32_t* word, std::uint32_t expected, std::uint32_t desired)
    {
        return atomicCAS(word, expected, desired);
    }
    __device__ static std::uint32_t set_bits(std::uint32_t* word, std::uint32_t bits) { return atomicOr(word, bits); }
    __device__ static void prefetch(const void* begin, std::uint32_t bytes)
    {
        constexpr std::uint32_t line = 128;
#pragma unroll 1
        for (std::uint32_t at = 0; at < bytes; at += line) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const char*>(begin) + at));
        }
    }

    // The number of bits b such that 2^b neighbouring threads may share each of `count` pieces of work in one step.
    __device__ std::uint32_t sharer_bits(std::uint32_t count) const
    {
        const std::uint32_t size = own().size();
        return (2 * count <= size ? 1 : 0) + (4 * count <= size ? 1 : 0) + (8 * count <= size ? 1 : 0);
    }
    // The sum over the threads that share a piece. Called by all threads of a warp.
    __device__ std::uint32_t sum(std::uint32_t sharer_bits, std::uint32_t value) const
    {
        for (std::uint32_t bit = 0; bit < sharer_bits; ++bit) {
            value += __shfl_xor_sync(own().warp_mask(), value, 1 << bit);
        }
        return value;
    }

    // The least value of the threads that share a piece, in all of them.
    __device__ std::uint32_t least(std::uint32_t sharer_bits, std::uint32_t value) const
    {
        for (std::uint32_t bit = 0; bit < sharer_bits; ++bit) {
            value = min(value, __shfl_xor_sync(own().warp_mask(), value, 1 << bit));
        }
        return value;
    }

    template <class Matches>
    __device__ std::uint32_t first_matches(std::uint32_t begin, std::uint32_t end, std::uint32_t most,
                                           const Matches& matches, std::uint32_t* out) const
    {
        const std::uint32_t width = own().warp_size();
        const std::uint32_t lane = own().rank() % 32;
        const std::uint32_t first_lane = threadIdx.x % 32 - lane;
        std::uint32_t found = 0;
        for (std::uint32_t base = begin; base < end && found < most; base += width) {
            const std::uint32_t i = base + lane;
            const bool holds = i < end && matches(i);
            const std::uint32_t all = (__ballot_sync(own().warp_mask(), holds) & own().warp_mask()) >> first_lane;
            const std::uint32_t place = found + __popc(all & ((1U << lane) - 1));
            if (holds && place < most) out[place] = i;
            found += __popc(all);
        }
        __syncwarp(own().warp_mask());
        return found < most ? found : most;
    }

    template <class Act>
    __device__ void by_warp(std::uint32_t count, const Act& act) const
    {
        __syncwarp(own().warp_mask());
        for (std::uint32_t i = own().rank() % 32; i < count; i += own().warp_size()) act(i);
        __syncwarp(own().warp_mask());
    }

private:
    __device__ const Own& own() const
    {
        return static_cast<const Own&>(*this);
    }
};

// A whole block. Its constants are known at compile time, which saves a third of the instructions. is_exclusive: the
// block has a multiprocessor to itself.
template <bool is_exclusive>
class BlockGroup : public GroupOperations<BlockGroup<is_exclusive>>
{
public:
    static constexpr bool exclusive = is_exclusive;
    __device__ static std::uint32_t rank() { return threadIdx.x; }
    __device__ static std::uint32_t size() { return blockDim.x; }
    __device__ static constexpr std::uint32_t warp_size() { return 32; }
    __device__ static constexpr std::uint32_t warp_mask() { return 0xffffffff; }
    __device__ static void sync() { __syncthreads(); }
};

// A group of any size.
class DeviceGroup : public GroupOperations<DeviceGroup>
{
public:
    static constexpr bool exclusive = false;
    // lanes: a power of two, at least 8. From 64 on the group is the whole block; below, the block may hold several
    // groups.
    __device__ explicit DeviceGroup(std::uint32_t lanes)
        : lanes_(lanes),
          rank_(threadIdx.x & (lanes - 1)),
          warp_mask_(lanes >= 32 ? 0xffffffffU : ((1U << lanes) - 1) << (threadIdx.x % 32 & ~(lanes - 1)))
    {
    }
    __device__ std::uint32_t rank() const { return rank_; }
    __device__ std::uint32_t size() const { return lanes_; }
    __device__ std::uint32_t warp_mask() const { return warp_mask_; }
    __device__ void sync() const
    {
        if (lanes_ <= 32) {
            __syncwarp(warp_mask_);
        } else {
            __syncthreads();
        }
    }

private:
    std::uint32_t lanes_;
    std::uint32_t rank_;
    std::uint32_t warp_mask_;
};

}  // namespace pgwarp::cuda::graph
