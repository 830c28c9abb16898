#include "ivfadc/probes.h"

#include <algorithm>

#include "device/error.h"
#include "ivfadc/block_select.cuh"
#include "ivfadc/probe_groups.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::ivfadc
{

namespace
{

constexpr int select_threads = 128;
constexpr int wide_threads = 1024;
constexpr int order_threads = 256;
constexpr int scan_threads = 1024;

// The sum over the threads before this one; *total becomes the sum over all. Called by all threads.
template <int Threads>
__device__ std::uint32_t sum_before(std::uint32_t own, std::uint32_t* total)
{
    __shared__ std::uint32_t warp_sums[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const std::uint32_t through = warp_prefix_sum(own);
    __syncthreads();
    if (lane == 31) warp_sums[warp] = through;
    __syncthreads();
    std::uint32_t before = 0;
    std::uint32_t all = 0;
    for (int w = 0; w < Threads / 32; ++w) {
        if (w < warp) before += warp_sums[w];
        all += warp_sums[w];
    }
    *total = all;
    return before + through - own;
}

struct ProbeTarget {
    ProbeArrays out;
    const std::uint32_t* list_length;
    const std::uint32_t* list_begin;
    std::uint32_t probes;
    float unit;  // factor of coarse scores; 0: all constants are 0
};

// Numbers the slots of a query's lists. The caller has a barrier after writing lists and constants.
template <int Threads>
__device__ void number_slots(const ProbeTarget& target, std::size_t query)
{
    const std::size_t first = query * target.probes;
    std::uint32_t slots = 0;
    for (std::uint32_t base = 0; base < target.probes; base += Threads) {
        const std::uint32_t rank = base + threadIdx.x;
        const std::uint32_t rows =
            rank < target.probes ? whole_groups(target.list_length[target.out.list[first + rank]]) : 0;
        std::uint32_t total = 0;
        const std::uint32_t before = sum_before<Threads>(rows, &total);
        if (rank < target.probes) target.out.slot[first + rank] = slots + before;
        if (rank < target.probes && target.out.groups.position != nullptr) {
            write_groups(target.out.groups, query, slots + before, rows,
                         target.list_begin[target.out.list[first + rank]], target.out.constant[first + rank], 0, 1);
        }
        slots += total;
    }
    if (threadIdx.x == 0) target.out.slots[query] = slots;
}

// A query with scores out of float's range probes the first lists with infinite constants, so it finds no rows.
template <int Threads, int Held>
__global__ __launch_bounds__(Threads) void select_probes_kernel(const float* coarse, std::size_t stride,
                                                                std::uint32_t lists, ProbeTarget target)
{
    __shared__ SelectShared shared;
    const std::size_t query = blockIdx.x;
    const float* scores = coarse + query * stride;
    const int found = select_smallest<Threads, Held>([&](std::uint32_t i) { return score_key(scores[i]); }, lists,
                                                     target.probes, shared);
    const std::size_t first = query * target.probes;
    const bool enough = found == static_cast<int>(target.probes);
    for (std::uint32_t rank = threadIdx.x; rank < target.probes; rank += Threads) {
        const std::uint64_t kept = enough ? shared.kept[rank] : rank;
        target.out.list[first + rank] = static_cast<std::uint32_t>(kept);
        const float score = float_of_order(static_cast<std::uint32_t>(kept >> 32));
        target.out.constant[first + rank] = !enough ? INFINITY : target.unit > 0 ? score * target.unit : 0.0F;
    }
    __syncthreads();
    number_slots<Threads>(target, query);
}

constexpr int probe_warps = 4;
constexpr int probe_groups = 32;
constexpr std::uint32_t warp_probes = 128;  // the most probes that a warp selects
constexpr int warp_kept = 512;

// Sorts `size` keys, a power of two, by one warp.
__device__ void warp_sort(std::uint64_t* keys, int size)
{
    const int lane = threadIdx.x % 32;
    for (int span = 2; span <= size; span *= 2) {
        for (int step = span / 2; step > 0; step /= 2) {
            __syncwarp();
            for (int i = lane; i < size / 2; i += 32) {
                const int low = 2 * step * (i / step) + i % step;
                const std::uint64_t a = keys[low];
                const std::uint64_t b = keys[low + step];
                if ((a > b) == ((low & span) == 0)) {
                    keys[low] = b;
                    keys[low + step] = a;
                }
            }
        }
    }
    __syncwarp();
}

// One warp for each query: a bound from the minima of disjoint parts, as in select_smallest(), and a sort of the scores
// within it.
__global__ __launch_bounds__(probe_warps * 32) void select_probes_by_warps(const float* coarse, std::size_t stride,
                                                                           std::uint32_t lists, std::uint32_t count,
                                                                           ProbeTarget target)
{
    __shared__ std::uint64_t all_kept[probe_warps][warp_kept];
    const std::uint32_t query = blockIdx.x * probe_warps + threadIdx.x / 32;
    if (query >= count) return;
    std::uint64_t* kept = all_kept[threadIdx.x / 32];
    const std::uint32_t lane = threadIdx.x % 32;
    const float* scores = coarse + query * stride;
    std::uint32_t minima[probe_groups];
    for (auto& minimum : minima) minimum = no_key;
    for (std::uint32_t base = 0; base < lists; base += 32 * probe_groups) {
#pragma unroll
        for (int g = 0; g < probe_groups; ++g) {
            const std::uint32_t i = base + g * 32 + lane;
            if (i < lists) minima[g] = min(minima[g], score_key(scores[i]));
        }
    }
    std::uint32_t limit = warp_limit(
        [&](std::uint32_t key) {
            std::uint32_t own = 0;
#pragma unroll
            for (const std::uint32_t minimum : minima) own += minimum <= key ? 1 : 0;
            return own;
        },
        target.probes);
    std::uint32_t found = 0;
    const auto keep = [&](bool ties_only) {
        constexpr int batch = 8;  // loads under way at a time
        for (std::uint32_t base = 0; base < lists; base += 32 * batch) {
            std::uint32_t keys[batch];
#pragma unroll
            for (int b = 0; b < batch; ++b) {
                const std::uint32_t i = base + b * 32 + lane;
                keys[b] = i < lists ? score_key(scores[i]) : no_key;
            }
#pragma unroll
            for (int b = 0; b < batch; ++b) {
                const bool here = keys[b] != no_key && (ties_only ? keys[b] == limit : keys[b] <= limit);
                const std::uint32_t ballot = __ballot_sync(0xffffffffU, here);
                const std::uint32_t at = found + __popc(ballot & ((1U << lane) - 1));
                if (here && at < warp_kept) {
                    kept[at] = static_cast<std::uint64_t>(keys[b]) << 32 | (base + b * 32 + lane);
                }
                found += __popc(ballot);
            }
        }
    };
    keep(false);
    if (found > warp_kept) {
        // Too many scores are within the bound: take those below the exact limit, which are fewer than wanted, and then
        // ties.
        limit = warp_limit(
            [&](std::uint32_t key) {
                std::uint32_t own = 0;
                for (std::uint32_t i = lane; i < lists; i += 32) own += score_key(scores[i]) <= key ? 1 : 0;
                return own;
            },
            target.probes);
        found = 0;
        --limit;
        keep(false);
        ++limit;
        keep(true);
        found = min(found, static_cast<std::uint32_t>(warp_kept));
    }
    int size = 2;
    while (size < static_cast<int>(found)) size *= 2;
    for (int i = static_cast<int>(found + lane); i < size; i += 32) kept[i] = ~std::uint64_t{0};
    warp_sort(kept, size);
    const bool enough = found >= target.probes;
    const std::size_t first = static_cast<std::size_t>(query) * target.probes;
    std::uint32_t slots = 0;
    for (std::uint32_t base = 0; base < target.probes; base += 32) {
        const std::uint32_t rank = base + lane;
        const bool here = rank < target.probes;
        const std::uint64_t entry = here ? (enough ? kept[rank] : rank) : 0;
        const auto list = static_cast<std::uint32_t>(entry);
        const std::uint32_t rows = here ? whole_groups(target.list_length[list]) : 0;
        const std::uint32_t through = warp_prefix_sum(rows);
        if (here) {
            const float score = float_of_order(static_cast<std::uint32_t>(entry >> 32));
            target.out.list[first + rank] = list;
            target.out.slot[first + rank] = slots + through - rows;
            target.out.constant[first + rank] = !enough ? INFINITY : target.unit > 0 ? score * target.unit : 0.0F;
        }
        slots += __shfl_sync(0xffffffffU, through, 31);
    }
    if (lane == 0) target.out.slots[query] = slots;
}

// For many probes, or all lists: selects by the exact limit, unordered.
__global__ __launch_bounds__(wide_threads) void select_many_probes(const float* coarse, std::size_t stride,
                                                                   std::uint32_t lists, ProbeTarget target)
{
    __shared__ SelectShared shared;
    const std::size_t query = blockIdx.x;
    const float* scores = coarse + query * stride;
    std::uint32_t limit = no_key;
    if (target.probes < lists) {
        limit = find_limit<wide_threads>(
            [&](const auto& f) {
                for (std::uint32_t i = threadIdx.x; i < lists; i += wide_threads) f(score_key(scores[i]));
            },
            target.probes, 4, shared);
    }
    if (threadIdx.x == 0) {
        shared.count = 0;
        shared.ties = 0;
    }
    __syncthreads();
    const std::size_t first = query * target.probes;
    const auto write = [&](std::uint32_t list, std::uint32_t at) {
        target.out.list[first + at] = list;
        target.out.constant[first + at] = target.unit > 0 ? scores[list] * target.unit : 0.0F;
    };
    for (std::uint32_t i = threadIdx.x; i < lists; i += wide_threads) {
        if (score_key(scores[i]) < limit || target.probes == lists) {
            write(i, static_cast<std::uint32_t>(atomicAdd(&shared.count, 1)));
        }
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < lists && target.probes < lists; i += wide_threads) {
        if (score_key(scores[i]) != limit) continue;
        const auto at = static_cast<std::uint32_t>(atomicAdd(&shared.count, 1));
        if (at < target.probes) write(i, at);
    }
    __syncthreads();
    number_slots<wide_threads>(target, query);
}

__device__ std::uint32_t bucket_of(std::uint32_t pair, std::uint32_t probes, std::uint32_t first_ranks,
                                   std::uint32_t list, std::uint32_t lists)
{
    return pair % probes < first_ranks ? list : lists + list;
}

__global__ void count_pairs(ProbeView probes, std::uint32_t pairs, std::uint32_t first_ranks, std::uint32_t lists,
                            std::uint32_t* counts)
{
    const std::uint32_t pair = blockIdx.x * order_threads + threadIdx.x;
    if (pair >= pairs) return;
    atomicAdd(counts + bucket_of(pair, probes.probes, first_ranks, probes.list[pair], lists), 1U);
}

__device__ std::uint32_t items_of(std::uint32_t pairs, std::uint32_t rows)
{
    return (pairs + scan_queries - 1) / scan_queries * ((whole_groups(rows) + item_rows - 1) / item_rows);
}

// One block computes the first pair and the first item of every bucket.
__global__ __launch_bounds__(scan_threads) void begin_buckets(const std::uint32_t* list_length, std::uint32_t lists,
                                                              OrderArrays out)
{
    std::uint32_t pairs_before = 0;
    std::uint32_t items_before = 0;
    for (std::uint32_t base = 0; base < 2 * lists; base += scan_threads) {
        const std::uint32_t bucket = base + threadIdx.x;
        const bool here = bucket < 2 * lists;
        const std::uint32_t count = here ? out.counts[bucket] : 0;
        const std::uint32_t items = here ? items_of(count, list_length[bucket % lists]) : 0;
        std::uint32_t pairs_total = 0;
        std::uint32_t items_total = 0;
        const std::uint32_t pair_begin = pairs_before + sum_before<scan_threads>(count, &pairs_total);
        const std::uint32_t item_begin = items_before + sum_before<scan_threads>(items, &items_total);
        if (here) {
            out.cursors[bucket] = pair_begin;
            out.item_begin[bucket] = item_begin;
            if (bucket == lists) out.totals[1] = item_begin;
        }
        pairs_before += pairs_total;
        items_before += items_total;
    }
    if (threadIdx.x == 0) {
        out.totals[0] = 0;
        out.totals[2] = items_before;
    }
}

// Writes the items of `count` pairs from `first` on with one list.
__device__ void write_items(std::uint32_t list, std::uint32_t first, std::uint32_t count, std::uint32_t rows,
                            ScanItem* item)
{
    for (std::uint32_t done = 0; done < count; done += scan_queries) {
        for (std::uint32_t row = 0; row < rows; row += item_rows) {
            *item++ = {list, first + done, min(scan_queries, count - done), row, min(item_rows, rows - row)};
        }
    }
}

__global__ void make_items(const std::uint32_t* list_length, std::uint32_t lists, OrderArrays out)
{
    const std::uint32_t bucket = blockIdx.x * order_threads + threadIdx.x;
    if (bucket >= 2 * lists) return;
    write_items(bucket % lists, out.cursors[bucket], out.counts[bucket], whole_groups(list_length[bucket % lists]),
                out.items + out.item_begin[bucket]);
}

// Each cursor ends at the end of its bucket.
__global__ void place_pairs(ProbeView probes, std::uint32_t pairs, std::uint32_t first_ranks, std::uint32_t lists,
                            OrderArrays out)
{
    const std::uint32_t pair = blockIdx.x * order_threads + threadIdx.x;
    if (pair >= pairs) return;
    const std::uint32_t bucket = bucket_of(pair, probes.probes, first_ranks, probes.list[pair], lists);
    out.order[atomicAdd(out.cursors + bucket, 1U)] = pair;
}

constexpr std::uint32_t few_pairs = 16384;
constexpr std::uint32_t few_buckets = 2048;

// One block does the work of order_pairs() for few pairs of one phase, in one launch instead of four.
__global__ __launch_bounds__(scan_threads) void order_few_pairs(ProbeView probes, std::uint32_t pairs,
                                                                const std::uint32_t* list_length, std::uint32_t lists,
                                                                OrderArrays out)
{
    __shared__ std::uint32_t counts[few_buckets];
    __shared__ std::uint32_t cursors[few_buckets];
    for (std::uint32_t i = threadIdx.x; i < lists; i += scan_threads) counts[i] = 0;
    __syncthreads();
    for (std::uint32_t pair = threadIdx.x; pair < pairs; pair += scan_threads) {
        atomicAdd(counts + probes.list[pair], 1U);
    }
    __syncthreads();
    std::uint32_t pairs_before = 0;
    std::uint32_t items_before = 0;
    for (std::uint32_t base = 0; base < lists; base += scan_threads) {
        const std::uint32_t list = base + threadIdx.x;
        const std::uint32_t count = list < lists ? counts[list] : 0;
        const std::uint32_t rows = count > 0 ? whole_groups(list_length[list]) : 0;
        std::uint32_t pairs_total = 0;
        std::uint32_t items_total = 0;
        const std::uint32_t pair_begin = pairs_before + sum_before<scan_threads>(count, &pairs_total);
        const std::uint32_t item_begin = items_before + sum_before<scan_threads>(items_of(count, rows), &items_total);
        if (count > 0) write_items(list, pair_begin, count, rows, out.items + item_begin);
        if (list < lists) cursors[list] = pair_begin;
        pairs_before += pairs_total;
        items_before += items_total;
    }
    if (threadIdx.x == 0) {
        out.totals[0] = 0;
        out.totals[1] = items_before;
        out.totals[2] = items_before;
    }
    __syncthreads();
    for (std::uint32_t pair = threadIdx.x; pair < pairs; pair += scan_threads) {
        out.order[atomicAdd(cursors + probes.list[pair], 1U)] = pair;
    }
}

}  // namespace

float constant_unit(const MirrorView& mirror)
{
    if (!mirror.scans_residuals()) return 0;
    const float unit = 1 / mirror.centres.half.scale;
    return mirror.metric == Metric::l2 ? unit * unit : unit;
}

void select_probes(const MirrorView& mirror, const float* coarse, std::size_t stride, std::uint32_t count,
                   std::uint32_t probes, const ProbeArrays& out, cudaStream_t stream)
{
    if (count == 0) return;
    const ProbeTarget target{out, mirror.list_length, mirror.list_begin, probes, constant_unit(mirror)};
    if (probes == mirror.lists || probes > select_most) {
        select_many_probes<<<count, wide_threads, 0, stream>>>(coarse, stride, mirror.lists, target);
    } else if (count <= 264 || out.groups.position != nullptr) {
        select_probes_kernel<1024, 8><<<count, 1024, 0, stream>>>(coarse, stride, mirror.lists, target);
    } else if (probes <= warp_probes) {
        select_probes_by_warps<<<(count + probe_warps - 1) / probe_warps, probe_warps * 32, 0, stream>>>(
            coarse, stride, mirror.lists, count, target);
    } else {
        select_probes_kernel<select_threads, 32>
            <<<count, select_threads, 0, stream>>>(coarse, stride, mirror.lists, target);
    }
    check_launch("selection of lists");
}

std::uint32_t most_items(std::uint32_t pairs, std::uint32_t lists, std::uint32_t longest)
{
    const std::uint32_t stretches = std::max<std::uint32_t>(1, (longest + item_rows - 1) / item_rows);
    return (pairs / scan_queries + std::min(pairs, 2 * lists)) * stretches;
}

void order_pairs(const MirrorView& mirror, const ProbeView& probes, std::uint32_t count, std::uint32_t first_ranks,
                 const OrderArrays& out, cudaStream_t stream)
{
    const std::uint32_t pairs = count * probes.probes;
    const std::uint32_t lists = mirror.lists;
    if (first_ranks == probes.probes && pairs <= few_pairs && lists <= few_buckets) {
        order_few_pairs<<<1, scan_threads, 0, stream>>>(probes, pairs, mirror.list_length, lists, out);
        check_launch("sorting pairs");
        return;
    }
    const std::uint32_t pair_blocks = (pairs + order_threads - 1) / order_threads;
    const std::uint32_t bucket_blocks = (2 * lists + order_threads - 1) / order_threads;
    check(cudaMemsetAsync(out.counts, 0, std::size_t{2} * lists * sizeof(std::uint32_t), stream), "counting pairs");
    count_pairs<<<pair_blocks, order_threads, 0, stream>>>(probes, pairs, first_ranks, lists, out.counts);
    check_launch("counting pairs");
    begin_buckets<<<1, scan_threads, 0, stream>>>(mirror.list_length, lists, out);
    check_launch("numbering pairs");
    make_items<<<bucket_blocks, order_threads, 0, stream>>>(mirror.list_length, lists, out);
    check_launch("making items");
    place_pairs<<<pair_blocks, order_threads, 0, stream>>>(probes, pairs, first_ranks, lists, out);
    check_launch("sorting pairs");
}

}  // namespace pgwarp::cuda::ivfadc
