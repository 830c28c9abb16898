#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/sparse_sums.h"
#include "select/warp.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr std::uint32_t warps = 8;
#ifndef PGWARP_QUADS
#define PGWARP_QUADS 2
#endif
constexpr int quads_at_once = PGWARP_QUADS;  // of a lane, which are on their way together

extern __shared__ uint4 all_sums[];

// Adds what a posting adds to a query: n times the multiplier, in units of 2^-15, rounded upwards; nothing where that
// is negative. Two sums share a word.
__device__ inline void add_posting(std::uint32_t posting, std::int32_t multiplier, std::uint32_t* sums)
{
    const std::int32_t product = (static_cast<std::int32_t>(posting) >> 16) * multiplier;
    const std::uint32_t place = posting & 0xffff;
    if (product > 0)
        atomicAdd(sums + place / 2, static_cast<std::uint32_t>((product + 0x7fff) >> 15) << place % 2 * 16);
}

// Two sums become bytes 1 and 3 of the word.
__device__ inline std::uint32_t rounded_up(std::uint32_t two_sums)
{
    return two_sums + 0x00ff00ffU;
}

// The lists of up to 32 items, one a lane, as one sequence of quads.
struct QuadSequence {
    std::uint32_t end = 0;     // of the lane's list in the sequence; ascending with the lanes
    std::uint32_t offset = 0;  // from a place in the sequence to the quad
    std::int32_t multiplier = 0;
    std::uint32_t total = 0;

    __device__ QuadSequence(const std::uint32_t* starts, const ListItem* items, std::uint32_t count)
    {
        const std::uint32_t lane = threadIdx.x % 32;
        std::uint32_t begin = 0;
        std::uint32_t length = 0;
        if (lane < count) {
            const ListItem item = items[lane];
            begin = starts[item.list];
            length = starts[item.list + 1] - begin;
            multiplier = item.multiplier;
        }
        end = warp_prefix_sum(length);
        offset = begin - (end - length);
        total = __shfl_sync(~0U, end, 31);
    }
    // Returns the lane whose list has this place. All lanes call.
    __device__ int owner(std::uint32_t place) const
    {
        int lane = 0;
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            if (__shfl_sync(~0U, end, lane + step - 1) <= place) lane += step;
        return lane;
    }
};

// Adds the lists of up to 32 items in a slice to the sums of a query.
__device__ inline void add_lists(const uint4* all_quads, const QuadSequence& sequence, std::uint32_t* sums)
{
    for (std::uint32_t first = threadIdx.x % 32; first - threadIdx.x % 32 < sequence.total;
         first += 32 * quads_at_once) {
        uint4 quads[quads_at_once];
        std::int32_t multipliers[quads_at_once];
#pragma unroll
        for (int j = 0; j < quads_at_once; ++j) {
            const std::uint32_t place = first + 32 * j;
            const int owner = sequence.owner(place);
            const std::uint32_t offset = __shfl_sync(~0U, sequence.offset, owner);
            multipliers[j] = __shfl_sync(~0U, sequence.multiplier, owner);
            quads[j] = place < sequence.total ? all_quads[place + offset] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int j = 0; j < quads_at_once; ++j) {
            add_posting(quads[j].x, multipliers[j], sums);
            add_posting(quads[j].y, multipliers[j], sums);
            add_posting(quads[j].z, multipliers[j], sums);
            add_posting(quads[j].w, multipliers[j], sums);
        }
    }
}

__global__ __launch_bounds__(warps * 32) void sum_kernel(SparseListsView lists, SparseItems items, std::uint32_t first,
                                                         std::uint8_t* bytes, std::uint32_t width)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t slot = blockIdx.x * warps + threadIdx.x / 32;
    if (slot >= items.slots) return;
    const std::uint32_t eights = lists.slice / 8;
    uint4* const own = all_sums + threadIdx.x / 32 * eights;
    for (std::uint32_t i = lane; i < eights; i += 32) own[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    const std::uint32_t* const starts = lists.starts + std::size_t{first + blockIdx.y} * (lists.lists + 1);
    const ListItem* const given = items.items + items.begins[slot];
    const std::uint32_t count = items.counts[slot];
    for (std::uint32_t base = 0; base < count; base += 32)
        add_lists(lists.quads, QuadSequence(starts, given + base, min(32U, count - base)),
                  reinterpret_cast<std::uint32_t*>(own));
    __syncwarp();
    auto* const out =
        reinterpret_cast<uint2*>(bytes + std::size_t{slot} * width + std::size_t{blockIdx.y} * lists.slice);
    for (std::uint32_t i = lane; i < eights; i += 32) {
        const uint4 eight = own[i];
        out[i] = make_uint2(__byte_perm(rounded_up(eight.x), rounded_up(eight.y), 0x7531),
                            __byte_perm(rounded_up(eight.z), rounded_up(eight.w), 0x7531));
    }
}

}  // namespace

std::size_t sum_shared_bytes(std::uint32_t slice)
{
    return std::size_t{warps} * slice * sizeof(std::uint16_t);
}

void sum_lists(const SparseListsView& lists, const SparseItems& items, std::uint32_t first, std::uint32_t count,
               std::uint8_t* bytes, std::uint32_t width, cudaStream_t stream)
{
    if (items.slots == 0 || count == 0) return;
    allow_shared_memory(sum_kernel, SharedMemoryUse::before_caches);
    sum_kernel<<<dim3((items.slots + warps - 1) / warps, count), warps * 32, sum_shared_bytes(lists.slice), stream>>>(
        lists, items, first, bytes, width);
    check_launch("sums of lists");
}

}  // namespace pgwarp::cuda::matchcount
