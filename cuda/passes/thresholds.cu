#include "passes/thresholds.h"

#include <cmath>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "passes/proposal_key.cuh"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = 128;

// Threads of the block for a slot: more where there are too few slots to fill the device.
unsigned slot_threads(const PreparedQueries& queries)
{
    return queries.count <= 64 ? 512 : block_threads;
}

__device__ float next_below(float value)
{
    return nextafterf(value, -INFINITY);
}

constexpr std::uint32_t taken_rank = 12;  // larger ranks are found by a sort

// Returns the keep-th smallest of `width` values in shared memory, in every thread: finds the smallest remaining value
// and counts its copies, again and again.
__device__ std::uint32_t take_smallest(const std::uint32_t* bits, std::uint32_t width, std::uint32_t keep)
{
    __shared__ std::uint32_t warps[32];
    __shared__ std::uint32_t taken;
    if (threadIdx.x == 0) taken = 0;
    std::uint64_t least = 0;  // of the remaining values
    while (true) {
        std::uint32_t smallest = ~0U;
        for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
            if (bits[i] >= least) smallest = min(smallest, bits[i]);
        }
        for (int offset = 16; offset > 0; offset /= 2) {
            smallest = min(smallest, __shfl_xor_sync(~0U, smallest, offset));
        }
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = smallest;
        __syncthreads();
        for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) smallest = min(smallest, warps[warp]);
        for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
            if (bits[i] == smallest) atomicAdd(&taken, 1);
        }
        __syncthreads();
        if (taken >= keep) return smallest;
        least = std::uint64_t{smallest} + 1;
    }
}

__global__ void choose_from_maxima(PreparedQueries queries, const float* maxima, std::uint32_t width,
                                   std::uint32_t keep, float* thresholds)
{
    extern __shared__ std::uint32_t bits[];
    let_next_start();
    wait_for_kernel_before();
    const std::uint32_t slot = blockIdx.x;
    if (queries.usable[slot] == 0) {
        if (threadIdx.x == 0) thresholds[slot] = INFINITY;
        return;
    }
    for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
        bits[i] = descending_bits(maxima[std::size_t{slot} * width + i]);
    }
    if (keep <= min(taken_rank, width)) {
        __syncthreads();
        const std::uint32_t chosen = take_smallest(bits, width, keep);
        if (threadIdx.x == 0) thresholds[slot] = next_below(score_of_bits(chosen));
        return;
    }
    bitonic_sort(width, [&](std::uint32_t i, std::uint32_t j) {
        const std::uint32_t a = bits[i];
        const std::uint32_t b = bits[j];
        bits[i] = min(a, b);
        bits[j] = max(a, b);
    });
    if (threadIdx.x == 0) thresholds[slot] = keep > width ? -INFINITY : next_below(score_of_bits(bits[keep - 1]));
}

__global__ void cut_entries(Proposals proposals, std::uint32_t keep, float* thresholds, std::uint32_t* incomplete)
{
    extern __shared__ std::uint64_t keys[];
    const std::uint32_t slot = blockIdx.x;
    const std::uint32_t counted = proposals.counts[slot];
    const std::uint32_t count = min(counted, proposals.capacity);
    Proposal* entries = proposals.entries + std::size_t{slot} * proposals.capacity;
    if (threadIdx.x == 0 && counted > proposals.capacity) incomplete[slot] = 1;
    if (count <= keep) return;
    const std::uint32_t width = power_of_two_from(count);
    for (std::uint32_t i = threadIdx.x; i < width; i += blockDim.x) {
        keys[i] = i < count ? proposal_key(entries[i]) : no_proposal;
    }
    sort_keys(keys, width);
    // Rows with equal scores stay together: a threshold between them could leave too few rows.
    const auto last = static_cast<std::uint32_t>(keys[keep - 1] >> 32);
    std::uint32_t kept = 0;
    for (std::uint32_t i = threadIdx.x; i < round_up(count, blockDim.x); i += blockDim.x) {
        const bool stays = i < count && static_cast<std::uint32_t>(keys[i] >> 32) <= last;
        if (stays) entries[i] = {score_of(keys[i]), static_cast<std::uint32_t>(keys[i])};
        kept += static_cast<std::uint32_t>(__syncthreads_count(stays ? 1 : 0));
    }
    if (threadIdx.x != 0) return;
    proposals.counts[slot] = kept;
    thresholds[slot] = next_below(score_of(keys[keep - 1]));
}

__global__ void take(PreparedQueries queries, const float* given, float* thresholds)
{
    const std::uint32_t slot = blockIdx.x * block_threads + threadIdx.x;
    if (slot >= queries.padded) return;
    thresholds[slot] =
        slot < queries.count && queries.usable[slot] != 0 ? (given != nullptr ? given[slot] : -INFINITY) : INFINITY;
}

}  // namespace

void thresholds_from_maxima(const PreparedQueries& queries, const float* maxima, std::uint32_t width,
                            std::uint32_t keep, float* thresholds, cudaStream_t stream)
{
    launch_chained(true, choose_from_maxima, queries.padded, slot_threads(queries), width * sizeof(std::uint32_t),
                   stream, "thresholds from maxima", queries, maxima, width, keep, thresholds);
    check_launch("thresholds from maxima");
}

void tighten_thresholds(const PreparedQueries& queries, const Proposals& proposals, std::uint32_t keep,
                        float* thresholds, std::uint32_t* incomplete, cudaStream_t stream)
{
    cut_entries<<<queries.count, slot_threads(queries), proposals.capacity * sizeof(std::uint64_t), stream>>>(
        proposals, keep, thresholds, incomplete);
    check_launch("tightening thresholds");
}

void take_thresholds(const PreparedQueries& queries, const float* given, float* thresholds, cudaStream_t stream)
{
    take<<<(queries.padded + block_threads - 1) / block_threads, block_threads, 0, stream>>>(queries, given,
                                                                                             thresholds);
    check_launch("taking thresholds");
}

void open_thresholds(const PreparedQueries& queries, float* thresholds, cudaStream_t stream)
{
    take_thresholds(queries, nullptr, thresholds, stream);
}

}  // namespace pgwarp::cuda
