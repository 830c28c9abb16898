#include "ivfadc/group_finish.h"

#include <cmath>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "ivfadc/block_select.cuh"
#include "ivfadc/candidate_values.cuh"
#include "rows/candidates.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int threads = 512;
constexpr std::uint32_t bins = 256;
constexpr std::uint32_t slack = 256;  // minima within a bound, beyond the wanted ones, before it is narrowed
constexpr int most_rounds = 4;
constexpr int few_candidates = threads / 8;  // candidates whose values are computed at once: a power of two

struct BoundShared {
    std::uint32_t low;
    std::uint32_t high;
    std::uint32_t below;   // minima before the range
    std::uint32_t within;  // minima up to the end of the range
};

struct FinishShared {
    SelectShared select;
    BoundShared bound;
    std::uint32_t rows[select_most];
    std::uint32_t groups[select_capacity];
    std::uint32_t group_count;
};

// Equal parts of the range of scores as bins. The bins of ascending scores do not descend.
struct Binning {
    float low;
    float scale;
    __device__ Binning(std::uint32_t low_key, std::uint32_t high_key) : low(float_of_order(low_key))
    {
        const float width = float_of_order(high_key) - low;
        scale = width > 0 && isfinite(width) ? static_cast<float>(bins) / width : 0;
        if (!isfinite(scale)) scale = 0;
    }
    __device__ std::uint32_t operator()(std::uint32_t key) const
    {
        return min(static_cast<std::uint32_t>((float_of_order(key) - low) * scale), bins - 1);
    }
};

// The least scores of parts of a query's groups, in registers. A part is one group where there are at most `step`
// groups.
struct Minima {
    static constexpr int held = 8;
    static constexpr std::uint32_t step = threads * held;
    const std::uint32_t* groups;  // [count]
    std::uint32_t count;
    std::uint32_t keys[held];

    __device__ Minima(const std::uint32_t* from, std::uint32_t number) : groups(from), count(number)
    {
#pragma unroll
        for (int h = 0; h < held; ++h) {
            const std::uint32_t i = h * threads + threadIdx.x;
            keys[h] = i < count ? groups[i] : no_key;
        }
        for (std::uint32_t base = step; base < count; base += step) {
#pragma unroll
            for (int h = 0; h < held; ++h) {
                const std::uint32_t i = base + h * threads + threadIdx.x;
                if (i < count) keys[h] = min(keys[h], groups[i]);
            }
        }
    }
    template <class F>
    __device__ void for_each(const F& f) const
    {
#pragma unroll
        for (const std::uint32_t key : keys) f(key);
    }
    // Calls f(group) for the groups whose least score is at most the bound.
    template <class F>
    __device__ void for_groups_within(std::uint32_t bound, const F& f) const
    {
#pragma unroll
        for (int h = 0; h < held; ++h) {
            if (keys[h] > bound) continue;
            for (std::uint32_t i = h * threads + threadIdx.x; i < count; i += step) {
                if (count <= step || groups[i] <= bound) f(i);
            }
        }
    }
};

// Finds the least and the greatest key other than no_key. Returns false where there is none.
__device__ bool find_range(const Minima& minima, BoundShared& shared)
{
    if (threadIdx.x == 0) {
        shared.low = no_key;
        shared.high = 0;
        shared.below = 0;
    }
    __syncthreads();
    std::uint32_t low = no_key;
    std::uint32_t not_high = no_key;
    minima.for_each([&](std::uint32_t key) {
        if (key == no_key) return;
        low = min(low, key);
        not_high = min(not_high, ~key);
    });
    low = warp_least(low);
    not_high = warp_least(not_high);
    if (threadIdx.x % 32 == 0 && low != no_key) {
        atomicMin(&shared.low, low);
        atomicMax(&shared.high, ~not_high);
    }
    __syncthreads();
    return shared.low != no_key;
}

// The bin of the sought-th counted key, computed by the first warp; `bins` where there are fewer keys.
__device__ std::uint32_t find_bin(const std::uint32_t* histogram, std::uint32_t sought, std::uint32_t* before)
{
    const int lane = threadIdx.x % 32;
    std::uint32_t own = 0;
    for (int i = 0; i < 8; ++i) own += histogram[lane * 8 + i];
    const std::uint32_t through = warp_prefix_sum(own);
    std::uint32_t bin = bins;
    std::uint32_t sum = through - own;
    if (sum < sought && sought <= through) {
        bin = lane * 8;
        while (sum + histogram[bin] < sought) sum += histogram[bin++];
    }
    const std::uint32_t holder = __ballot_sync(0xffffffffU, bin < bins);
    if (holder == 0) return bins;
    *before = __shfl_sync(0xffffffffU, sum, __ffs(holder) - 1);
    return __shfl_sync(0xffffffffU, bin, __ffs(holder) - 1);
}

// A key that at least `wanted` minima do not exceed, and few more. Where there are fewer minima, the largest key of a
// score; where there are none, 0.
__device__ std::uint32_t bound_of(const Minima& minima, std::uint32_t wanted, FinishShared& shared)
{
    BoundShared& range = shared.bound;
    if (!find_range(minima, range)) return 0;
    for (int round = 1;; ++round) {
        const std::uint32_t low = range.low;
        const std::uint32_t high = range.high;
        const Binning bin_of(low, high);
        std::uint32_t* histogram = shared.select.histogram;
        if (threadIdx.x < bins) histogram[threadIdx.x] = 0;
        __syncthreads();
        minima.for_each([&](std::uint32_t key) {
            if (low <= key && key <= high) atomicAdd(histogram + bin_of(key), 1U);
        });
        __syncthreads();
        if (threadIdx.x < 32) {
            std::uint32_t before = 0;
            const std::uint32_t bin = find_bin(histogram, wanted - range.below, &before);
            if (threadIdx.x == 0) {
                shared.select.prefix = bin;
                range.within = bin < bins ? range.below + before + histogram[bin] : wanted;
                range.below += before;
                if (bin < bins) {
                    range.low = no_key;
                    range.high = 0;
                }
            }
        }
        __syncthreads();
        const std::uint32_t bin = shared.select.prefix;
        if (bin == bins) return no_key - 1;
        minima.for_each([&](std::uint32_t key) {
            if (key < low || key > high || bin_of(key) != bin) return;
            atomicMin(&range.low, key);
            atomicMax(&range.high, key);
        });
        __syncthreads();
        if (range.within <= wanted + slack || round == most_rounds || range.low == range.high) return range.high;
        __syncthreads();
    }
}

// Collects the scores up to `bound` in select.kept, unordered. The returned count may exceed the capacity.
__device__ int gather(const float* scores, const Minima& minima, std::uint32_t bound, FinishShared& shared)
{
    if (threadIdx.x == 0) {
        shared.group_count = 0;
        shared.select.count = 0;
    }
    __syncthreads();
    minima.for_groups_within(bound, [&](std::uint32_t group) {
        const std::uint32_t at = atomicAdd(&shared.group_count, 1U);
        if (at < select_capacity) shared.groups[at] = group;
    });
    __syncthreads();
    const std::uint32_t chosen = shared.group_count;
    if (chosen > select_capacity) return select_capacity + 1;
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint32_t i = threadIdx.x / 32; i < chosen; i += threads / 32) {
        const std::uint32_t slot = shared.groups[i] * group_rows + lane;
        const std::uint32_t key = score_key(scores[slot]);
        const bool here = key <= bound;
        const std::uint32_t ballot = __ballot_sync(0xffffffffU, here);
        int first = 0;
        if (lane == 0) first = atomicAdd(&shared.select.count, __popc(ballot));
        first = __shfl_sync(0xffffffffU, first, 0) + __popc(ballot & ((1U << lane) - 1));
        if (here && first < select_capacity) shared.select.kept[first] = static_cast<std::uint64_t>(key) << 32 | slot;
    }
    __syncthreads();
    return shared.select.count;
}

// Sorts few candidates by (value, row): 8 lanes count the candidates before each one.
__device__ void sort_few(FinishShared& shared, int kept)
{
    if (kept == 0) return;
    const int at = min(static_cast<int>(threadIdx.x) / 8, kept - 1);
    const std::uint64_t value = shared.select.kept[at];
    const std::uint32_t row = shared.rows[at];
    std::uint32_t place = 0;
    for (int i = static_cast<int>(threadIdx.x) % 8; i < kept; i += 8) {
        const std::uint64_t other = shared.select.kept[i];
        place += other < value || (other == value && shared.rows[i] < row) ? 1 : 0;
    }
    for (int step = 4; step > 0; step /= 2) place += __shfl_xor_sync(0xffffffffU, place, step, 8);
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < kept * 8 && threadIdx.x % 8 == 0) {
        shared.select.kept[place] = value;
        shared.rows[place] = row;
    }
    __syncthreads();
}

// Only the first warp writes, so that one fence is enough before `found` is written for the host.
__device__ void emit(const FinishShared& shared, int kept, std::uint32_t query, std::uint32_t k, const Answers& out)
{
    if (threadIdx.x >= 32) return;
    const std::size_t first = static_cast<std::size_t>(query) * k;
    for (std::uint32_t i = threadIdx.x; i < min(static_cast<std::uint32_t>(kept), k); i += 32) {
        out.values[first + i] = double_of_order(shared.select.kept[i]);
        out.rows[first + i] = shared.rows[i];
    }
    __threadfence_system();
    __syncwarp();
    if (threadIdx.x == 0) *const_cast<volatile std::uint32_t*>(out.found + query) = static_cast<std::uint32_t>(kept);
}

__global__ __launch_bounds__(threads) void finish_groups_kernel(MirrorView mirror, QueryView queries, ProbeView probes,
                                                                DenseScores scores, std::uint32_t wanted,
                                                                std::uint32_t k, Answers out)
{
    __shared__ FinishShared shared;
    wait_for_kernel_before();
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t slots = probes.slots[query];
    const float* row = scores.scores + query * scores.stride;
    const Minima minima(scores.minima + query * scores.stride / group_rows, slots / group_rows);
    const std::uint32_t bound = bound_of(minima, wanted, shared);
    int kept = gather(row, minima, bound, shared);
    if (kept > few_candidates) {
        if (kept <= select_capacity) {
            sort_kept<threads>(shared.select, kept);
        } else {
            kept = select_smallest<threads, 16>([&](std::uint32_t i) { return score_key(row[i]); }, slots, wanted,
                                                shared.select);
        }
        kept = min(kept, static_cast<int>(wanted));
    }
    const std::uint32_t* positions = probes.group_position + query * probes.group_stride;
    for (int i = threadIdx.x; i < kept; i += threads) {
        const auto slot = static_cast<std::uint32_t>(shared.select.kept[i]);
        shared.rows[i] = positions[slot / group_rows] + slot % group_rows;
    }
    __syncthreads();
    value_candidates<threads>(mirror, queries, query, kept, shared.select.kept, shared.rows);
    if (kept <= few_candidates) {
        sort_few(shared, kept);
    } else {
        sort_candidates<threads>(kept, shared.select.kept, shared.rows);
    }
    emit(shared, kept, query, k, out);
}

}  // namespace

void finish_groups(const MirrorView& mirror, const QueryView& queries, const ProbeView& probes,
                   const DenseScores& scores, std::uint32_t count, std::uint32_t wanted, std::uint32_t k,
                   const Answers& out, cudaStream_t stream)
{
    if (count == 0) return;
    launch_chained(count <= chained_queries, finish_groups_kernel, count, threads, 0, stream, "ranking candidates",
                   mirror, queries, probes, scores, wanted, k, out);
}

}  // namespace pgwarp::cuda::ivfadc
