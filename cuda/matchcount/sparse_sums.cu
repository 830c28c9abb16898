#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/sparse_sums.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr std::uint32_t warps = 8;
#ifndef PGWARP_LISTS
#define PGWARP_LISTS 4
#endif
constexpr int lists_at_once = PGWARP_LISTS;  // whose postings are on their way together

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

__global__ __launch_bounds__(warps * 32, 3) void sum_kernel(SparseListsView lists, SparseItems items,
                                                            std::uint32_t first, std::uint8_t* bytes,
                                                            std::uint32_t width)
{
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t slot = blockIdx.x * warps + threadIdx.x / 32;
    if (slot >= items.slots) return;
    const std::uint32_t eights = lists.slice / 8;
    uint4* const own = all_sums + threadIdx.x / 32 * eights;
    auto* const sums = reinterpret_cast<std::uint32_t*>(own);
    for (std::uint32_t i = lane; i < eights; i += 32) own[i] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    const std::uint32_t* const starts = lists.starts + std::size_t{first + blockIdx.y} * (lists.lists + 1);
    const ListItem* const given = items.items + items.begins[slot];
    const std::uint32_t count = items.counts[slot];
    for (std::uint32_t base = 0; base < count; base += 32) {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;
        std::int32_t multiplier = 0;
        if (base + lane < count) {
            const ListItem item = given[base + lane];
            begin = starts[item.list];
            end = starts[item.list + 1];
            multiplier = item.multiplier;
        }
        const std::uint32_t here = min(32U, count - base);
        for (std::uint32_t i = 0; i < here; i += lists_at_once) {
            std::uint32_t at[lists_at_once];
            std::uint32_t ends[lists_at_once];
            std::int32_t factors[lists_at_once];
            std::uint32_t postings[lists_at_once];
#pragma unroll
            for (int j = 0; j < lists_at_once; ++j) {
                at[j] = __shfl_sync(~0U, begin, static_cast<int>(i) + j) + lane;
                ends[j] = __shfl_sync(~0U, end, static_cast<int>(i) + j);
                factors[j] = __shfl_sync(~0U, multiplier, static_cast<int>(i) + j);
                postings[j] = at[j] < ends[j] ? lists.postings[at[j]] : 0;
            }
#pragma unroll
            for (int j = 0; j < lists_at_once; ++j) {
                add_posting(postings[j], factors[j], sums);
#pragma unroll 2
                for (std::uint32_t next = at[j] + 32; next < ends[j]; next += 32)
                    add_posting(lists.postings[next], factors[j], sums);
            }
        }
    }
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
