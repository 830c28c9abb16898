// Exact thresholds for the rows that a sample misjudged: radix selection over the whole row with eleven-bit digits, by
// all blocks of one cooperative launch. A row is read at most six times for its threshold and once to collect.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "device/error.h"
#include "select/block_rank.cuh"
#include "select/grid_select.cuh"

namespace pgwarp::cuda
{
namespace
{

using detail::CandidateLists;
namespace cg = cooperative_groups;

constexpr int threads = 512;
constexpr int blocks_per_multiprocessor = 2;

// Calls visit(key) for each selectable key of the calling thread's part of the row.
template <bool with_ids, class Visit>
__device__ void visit_row(const RowSpan<with_ids>& row, Visit visit)
{
    const std::uint32_t vectors = (row.end() + 3) / 4, step = gridDim.x * threads;
    for (std::uint64_t vector = blockIdx.x * threads + threadIdx.x; vector < vectors; vector += step) {
        const auto v = static_cast<std::uint32_t>(vector);
        const float4 loaded = row.load(v);
        const float scores[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (scores[i] <= FLT_MAX) visit(make_key(scores[i], row.id(4 * v + i)));
    }
}

// One digit at a time, each with its own histogram in device memory. Every block computes the same bound.
template <bool with_ids>
__device__ RankBound find_row_rank(const RowSpan<with_ids>& row, unsigned lowest, unsigned highest,
                                   unsigned* histograms, RankShared& shared, cg::grid_group& grid)
{
    SelectKey prefix = 0;
    unsigned below = 0;
    for (int shift = 64;; histograms += digit_bins) {
        const SelectKey mask = shift == 64 ? 0 : ~SelectKey{0} << shift;
        const int bits = min(digit_bits, shift);
        shift -= bits;
        for (int i = static_cast<int>(threadIdx.x); i < digit_bins; i += threads) shared.histogram[i] = 0;
        __syncthreads();
        visit_row(row, [&](SelectKey key) {
            if ((key & mask) == prefix)
                atomicAdd(&shared.histogram[static_cast<unsigned>(key >> shift) & ((1u << bits) - 1u)], 1u);
        });
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < digit_bins; i += threads)
            if (shared.histogram[i] != 0) atomicAdd(&histograms[i], shared.histogram[i]);
        grid.sync();
        for (int i = static_cast<int>(threadIdx.x); i < digit_bins; i += threads)
            shared.histogram[i] = __ldcg(&histograms[i]);
        __syncthreads();
        if (!detail::find_bin<threads>(shared, lowest - below)) return {padding_key, 0, 0, false};
        prefix |= static_cast<SelectKey>(shared.bin) << shift;
        below += shared.below;
        const unsigned count = below + shared.inside;
        if (count <= highest || shift == 0) return {prefix | ((SelectKey{1} << shift) - 1), below, count, shift == 0};
        // shared.histogram is cleared next.
        __syncthreads();
    }
}

template <bool with_ids>
__device__ void collect_row(const RowSpan<with_ids>& row, const RankBound& ranked, SelectKey* list,
                            std::int64_t capacity, unsigned* counters)
{
    // The capacity is exceeded only where one key occurs very often. Equal keys are interchangeable.
    const bool repeated = ranked.count > capacity;
    visit_row(row, [&](SelectKey key) {
        if (key > ranked.bound) return;
        const bool equal = repeated && key == ranked.bound;
        const unsigned slot = equal ? ranked.below + atomicAdd(&counters[1], 1u) : atomicAdd(&counters[0], 1u);
        if (slot < capacity) list[slot] = key;
    });
}

template <bool with_ids>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
    repair_kernel(SelectInput input, std::uint32_t columns, unsigned k, std::int64_t first_row, std::int64_t rows,
                  CandidateLists lists, unsigned* histograms)
{
    __shared__ RankShared shared;
    cg::grid_group grid = cg::this_grid();
    bool any = false;
    for (std::int64_t i = threadIdx.x; i < rows; i += threads) any = any || detail::misjudged(lists, i, k);
    if (!__syncthreads_or(any)) return;
    unsigned* counters = histograms + 6 * digit_bins;
    for (std::int64_t i = 0; i < rows; i++) {
        if (!detail::misjudged(lists, i, k)) continue;
        for (std::uint32_t j = grid.thread_rank(); j < detail::repair_words; j += grid.size()) histograms[j] = 0;
        grid.sync();
        const RowSpan<with_ids> row(input, first_row + i, 0, columns);
        const RankBound ranked =
            find_row_rank(row, min(k, columns), static_cast<unsigned>(lists.capacity), histograms, shared, grid);
        // With fewer than k selectable keys all of them fit.
        const RankBound all{padding_key - 1, 0, 0, false};
        collect_row(row, ranked.bound == padding_key ? all : ranked, lists.keys + i * lists.capacity, lists.capacity,
                    counters);
        grid.sync();
        if (grid.thread_rank() == 0)
            lists.counts[i] = min(counters[0] + counters[1], static_cast<unsigned>(lists.capacity));
        grid.sync();
    }
}

}  // namespace

namespace detail
{

void repair_lists(const SelectOperands& operands, std::int64_t first_row, std::int64_t rows,
                  const CandidateLists& lists, unsigned* histograms, cudaStream_t stream)
{
    SelectInput input{operands.values, operands.ids, operands.stride};
    auto columns = static_cast<std::uint32_t>(operands.columns);
    auto k = static_cast<unsigned>(std::min(operands.k, operands.columns));
    CandidateLists given = lists;
    void* arguments[] = {&input, &columns, &k, &first_row, &rows, &given, &histograms};
    const void* kernel = operands.ids != nullptr ? reinterpret_cast<const void*>(repair_kernel<true>)
                                                 : reinterpret_cast<const void*>(repair_kernel<false>);
    check(cudaLaunchCooperativeKernel(kernel, static_cast<unsigned>(multiprocessors()), threads, arguments, 0, stream),
          "launching repair_kernel");
}

}  // namespace detail
}  // namespace pgwarp::cuda
