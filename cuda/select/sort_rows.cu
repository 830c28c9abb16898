// Sort of the candidates of every row, and output of the first k of each. For small k one block cuts and sorts. For
// large k tiles are sorted in shared memory, and runs are merged pairwise along merge paths. The order of (score, id)
// is total, so the order of the candidates in a list does not matter.
#include <cuda_runtime.h>

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "select/block_sort.cuh"
#include "select/kernels.h"
#include "select/merge_path.cuh"

namespace pgwarp::cuda
{
namespace
{

constexpr int cut_threads = 512;
constexpr unsigned cut_staged = 16384;  // candidates that it sorts in shared memory without a cut

__device__ RankBound find_listed_rank(const SelectKey* list, unsigned count, unsigned k, unsigned room,
                                      RankShared& shared)
{
    return find_rank<cut_threads>(shared, k, room, [&](auto visit) {
        for (unsigned i = threadIdx.x; i < count; i += cut_threads) visit(list[i]);
    });
}

// k <= detail::cut_most. keys: room for `staged` keys, which must be enough for a sort of k keys.
__global__ void __launch_bounds__(cut_threads)
    cut_and_sort_kernel(const SelectKey* candidates, const unsigned* counts, std::int64_t capacity, unsigned staged,
                        unsigned k, float* scores, std::uint32_t* ids)
{
    extern __shared__ SelectKey keys[];
    __shared__ RankShared shared;
    const std::int64_t row = blockIdx.x;
    const SelectKey* list = candidates + row * capacity;
    unsigned count = counts[row];
    if (count <= staged) {
        for (unsigned i = threadIdx.x; i < count; i += cut_threads) keys[i] = list[i];
    } else {
        const unsigned room = max(static_cast<unsigned>(cut_threads), power_of_two_from(k));
        const RankBound ranked = find_listed_rank(list, count, k, room, shared);
        // An id given twice can leave more equal keys than there is room for.
        const bool repeated = ranked.count > room;
        if (threadIdx.x == 0) shared.kept = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < count; i += cut_threads) {
            const SelectKey key = list[i];
            if (key < ranked.bound || (key == ranked.bound && !repeated)) keys[atomicAdd(&shared.kept, 1u)] = key;
        }
        if (repeated)
            for (unsigned i = ranked.below + threadIdx.x; i < room; i += cut_threads) keys[i] = ranked.bound;
        count = min(ranked.count, room);
    }
    __syncthreads();
    finish_row<cut_threads>(keys, count, k, shared, scores + row * k, ids + row * k);
}

constexpr int items = 8;  // keys that a thread sorts or merges
constexpr int merge_threads = 256;
constexpr unsigned merged = merge_threads * items;

// Sorts every tile of every row in ascending order. Keys beyond the row's count become padding.
template <unsigned tile>
__global__ void __launch_bounds__(tile / items)
    sort_tiles_kernel(SelectKey* candidates, const unsigned* counts, std::int64_t capacity)
{
    constexpr int tile_threads = tile / items;
    extern __shared__ SelectKey keys[];
    const unsigned first = blockIdx.x * tile, count = counts[blockIdx.y];
    if (first >= count) return;
    SelectKey* mine = candidates + blockIdx.y * capacity + first;
    const Spread spread{keys};
    SelectKey own[items];
#pragma unroll
    for (int i = 0; i < items; i++) {
        const unsigned place = i * tile_threads + threadIdx.x;  // any order will do
        own[i] = first + place < count ? mine[place] : padding_key;
    }
    sort_own(own);
    const unsigned position = threadIdx.x * items;
    for (unsigned run = items;; run *= 2) {
        spread.store(position, own);
        __syncthreads();
        if (run == tile) break;
        const unsigned pair = position / (2 * run) * (2 * run);
        const Spread a{keys, pair}, b{keys, pair + run};
        merge_own(a, run, b, run, position - pair, own);
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < tile; i += tile_threads) mine[i] = spread[i];
}

struct Runs {
    const unsigned* counts;
    std::int64_t capacity;
    unsigned tile;    // of the first sort, which padded the last tile of each row
    unsigned run;     // length of the sorted runs
    unsigned needed;  // keys needed of each result
};

// Merges runs pairwise. A block computes `merged` keys of one result into `keys` (shared memory) and returns their
// number.
__device__ unsigned merge_part(const SelectKey* source, const Runs& runs, unsigned count, unsigned first,
                               SelectKey* keys, unsigned* cuts)
{
    const unsigned run = runs.run, pair = first / (2 * run) * (2 * run), offset = first - pair;
    const SelectKey *a = source + pair, *b = a + run;
    const unsigned a_count = min(run, count - pair), b_count = count - pair > run ? min(run, count - pair - run) : 0;
    const unsigned last = min(offset + merged, a_count + b_count);
    if (threadIdx.x < 64) {
        const unsigned cut = merge_path_by_warp(a, a_count, b, b_count, threadIdx.x < 32 ? offset : last);
        if (threadIdx.x % 32 == 0) cuts[threadIdx.x / 32] = cut;
    }
    __syncthreads();
    const unsigned a_first = cuts[0], a_here = cuts[1] - a_first;
    const unsigned b_first = offset - a_first, here = last - offset;
    const Spread all{keys};
    for (unsigned i = threadIdx.x; i < here; i += merge_threads)
        all[i] = i < a_here ? a[a_first + i] : b[b_first + i - a_here];
    __syncthreads();
    SelectKey own[items];
    const Spread b_part{keys, a_here};
    merge_own(all, a_here, b_part, here - a_here, min(threadIdx.x * items, here), own);
    __syncthreads();
    all.store(threadIdx.x * items, own);
    __syncthreads();
    return here;
}

// The number of keys of the row, with the padding of the last tile.
__device__ unsigned sorted_count(const Runs& runs, std::int64_t row)
{
    return (runs.counts[row] + runs.tile - 1) / runs.tile * runs.tile;
}

__global__ void __launch_bounds__(merge_threads)
    merge_runs_kernel(const SelectKey* source, SelectKey* target, Runs runs)
{
    __shared__ SelectKey keys[Spread::room(merged)];
    __shared__ unsigned cuts[2];
    const unsigned first = blockIdx.x * merged, count = sorted_count(runs, blockIdx.y);
    if (first >= count || first % (2 * runs.run) >= runs.needed) return;
    const unsigned here = merge_part(source + blockIdx.y * runs.capacity, runs, count, first, keys, cuts);
    SelectKey* row = target + blockIdx.y * runs.capacity + first;
    const Spread all{keys};
    for (unsigned i = threadIdx.x; i < here; i += merge_threads) row[i] = all[i];
}

// Merges the last two runs, or copies where there is one run, and writes the results.
__global__ void __launch_bounds__(merge_threads)
    merge_last_kernel(const SelectKey* source, Runs runs, float* scores, std::uint32_t* ids)
{
    __shared__ SelectKey keys[Spread::room(merged)];
    __shared__ unsigned cuts[2];
    const unsigned first = blockIdx.x * merged, k = runs.needed, count = sorted_count(runs, blockIdx.y);
    const std::int64_t row = blockIdx.y;
    unsigned here = 0;
    if (first < count) here = merge_part(source + row * runs.capacity, runs, count, first, keys, cuts);
    const Spread all{keys};
    for (unsigned i = threadIdx.x; i < merged && first + i < k; i += merge_threads) {
        const SelectKey key = i < here ? all[i] : padding_key;
        scores[row * k + first + i] = key_score(key);
        ids[row * k + first + i] = key_id(key);
    }
}

std::size_t shared_bytes_per_block()
{
    int device = 0, most = 0;
    check(cudaGetDevice(&device), "reading the current device");
    check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "reading a device property");
    return static_cast<std::size_t>(most);
}

void cut_and_sort(const SelectKey* keys, const unsigned* counts, unsigned rows, std::int64_t capacity, unsigned k,
                  float* scores, std::uint32_t* ids, cudaStream_t stream)
{
    unsigned staged = cut_threads;
    while (staged < k) staged *= 2;
    staged = std::max(staged, static_cast<unsigned>(std::min<std::int64_t>(capacity, cut_staged)));
    const auto most = shared_bytes_per_block();
    if (staged * sizeof(SelectKey) + sizeof(RankShared) > most) staged = detail::cut_most;
    allow_shared_memory(cut_and_sort_kernel);
    cut_and_sort_kernel<<<rows, cut_threads, staged * sizeof(SelectKey), stream>>>(keys, counts, capacity, staged, k,
                                                                                   scores, ids);
    check_launch("cut_and_sort_kernel");
}

template <unsigned tile>
void sort_tiles(SelectKey* keys, const unsigned* counts, unsigned rows, std::int64_t capacity, cudaStream_t stream)
{
    constexpr int bytes = Spread::room(tile) * sizeof(SelectKey);
    allow_shared_memory(sort_tiles_kernel<tile>);
    sort_tiles_kernel<tile>
        <<<dim3(static_cast<unsigned>(capacity / tile), rows), tile / items, bytes, stream>>>(keys, counts, capacity);
    check_launch("sort_tiles_kernel");
}

}  // namespace

namespace detail
{

void sort_candidates(SelectKey* keys, SelectKey* other, const unsigned* counts, std::int64_t rows,
                     std::int64_t capacity, std::int64_t k, float* scores, std::uint32_t* ids, cudaStream_t stream)
{
    const auto grid_rows = static_cast<unsigned>(rows), wanted = static_cast<unsigned>(k);
    if (k <= cut_most) {
        cut_and_sort(keys, counts, grid_rows, capacity, wanted, scores, ids, stream);
        return;
    }
    const bool large_tiles = shared_bytes_per_block() >= Spread::room(sort_tile) * sizeof(SelectKey);
    const unsigned tile = large_tiles ? sort_tile : sort_tile / 2;
    if (large_tiles)
        sort_tiles<sort_tile>(keys, counts, grid_rows, capacity, stream);
    else
        sort_tiles<sort_tile / 2>(keys, counts, grid_rows, capacity, stream);
    Runs runs{counts, capacity, tile, tile, wanted};
    const auto parts = static_cast<unsigned>(capacity / merged);
    for (; 2 * std::int64_t{runs.run} < capacity; runs.run *= 2) {
        merge_runs_kernel<<<dim3(parts, grid_rows), merge_threads, 0, stream>>>(keys, other, runs);
        check_launch("merge_runs_kernel");
        std::swap(keys, other);
    }
    merge_last_kernel<<<dim3((wanted + merged - 1) / merged, grid_rows), merge_threads, 0, stream>>>(keys, runs, scores,
                                                                                                     ids);
    check_launch("merge_last_kernel");
}

}  // namespace detail
}  // namespace pgwarp::cuda
