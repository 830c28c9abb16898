// Selection by the whole grid, for few long rows or large k. A sample gives each row a threshold, one pass appends the
// keys at or below it to the row's list, rare misjudged rows are repaired, and the lists are sorted.
#include "select/grid_select.cuh"

#include <cuda_runtime.h>

#include <algorithm>

#include "device/error.h"
#include "device/shared_memory.h"
#include "select/sample.cuh"

namespace pgwarp::cuda
{
namespace
{

using detail::CandidateLists;

constexpr int sample_threads = 1024;
constexpr int filter_threads = 256;
constexpr int filter_warps = filter_threads / 32;
constexpr int filter_vectors = 4;                          // of four scores, for each lane and tile
constexpr unsigned filter_tile = 32 * 4 * filter_vectors;  // scores of a warp's tile
constexpr unsigned staged = 256 + filter_tile;             // keys of a warp before they are flushed

template <bool with_ids>
__global__ void __launch_bounds__(sample_threads)
    sample_rows_kernel(SelectInput input, std::uint32_t columns, SampleRank rank, std::int64_t first_row,
                       CandidateLists lists)
{
    __shared__ RankShared shared;
    SelectKey threshold = padding_key;
    if (rank.lowest > 0) {
        const RowSpan<with_ids> row(input, first_row + blockIdx.x, 0, columns);
        threshold =
            sample_threshold<sample_threads, 1>(row, static_cast<std::uint32_t>(first_row + blockIdx.x), rank, shared);
    }
    if (threadIdx.x == 0) {
        lists.thresholds[blockIdx.x] = threshold;
        lists.counts[blockIdx.x] = 0;
    }
}

// Appends a warp's staged keys to the row's list.
__device__ void flush(const SelectKey* keys, unsigned count, SelectKey* list, unsigned* list_count,
                      std::int64_t capacity)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned place = 0;
    if (lane == 0) place = atomicAdd(list_count, count);
    place = __shfl_sync(0xffffffffu, place, 0);
    for (unsigned i = lane; i < count && place + i < capacity; i += 32) list[place + i] = keys[i];
    __syncwarp();
}

// Block (part, row) filters `tiles` tiles of the row with each of its warps. Warps do not synchronize with each other.
template <bool with_ids>
__global__ void __launch_bounds__(filter_threads)
    filter_rows_kernel(SelectInput input, std::uint32_t columns, unsigned tiles, std::int64_t first_row,
                       CandidateLists lists)
{
    extern __shared__ SelectKey all_keys[];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, before = (1u << lane) - 1u;
    SelectKey* keys = all_keys + warp * staged;
    unsigned count = 0;
    const RowSpan<with_ids> row(input, first_row + blockIdx.y, 0, columns);
    const SelectKey threshold = lists.thresholds[blockIdx.y];
    const float bound = key_bound(threshold);
    SelectKey* list = lists.keys + blockIdx.y * lists.capacity;
    unsigned* list_count = lists.counts + blockIdx.y;
    constexpr unsigned step = filter_warps * filter_tile;
    const std::uint64_t begin = std::uint64_t{blockIdx.x} * tiles * step + warp * filter_tile;
    const std::uint64_t end = min(begin + std::uint64_t{tiles} * step, std::uint64_t{row.end()});
    float next[4 * filter_vectors];
    if (begin < end) row.load_tile(next, static_cast<std::uint32_t>(begin / 4) + lane, 32);
    for (std::uint64_t first = begin; first < end; first += step) {
        const std::uint32_t vector = static_cast<std::uint32_t>(first / 4) + lane;
        float scores[4 * filter_vectors];
#pragma unroll
        for (int i = 0; i < 4 * filter_vectors; i++) scores[i] = next[i];
        if (first + step < end) row.load_tile(next, vector + step / 4, 32);
        float nearest = scores[0];
#pragma unroll
        for (int i = 1; i < 4 * filter_vectors; i++) nearest = fminf(nearest, scores[i]);
        if (!__any_sync(0xffffffffu, nearest <= bound)) continue;
#pragma unroll
        for (int i = 0; i < 4 * filter_vectors; i++) {
            if (!__any_sync(0xffffffffu, scores[i] <= bound)) continue;
            SelectKey key = padding_key;
            if (scores[i] <= bound) key = make_key(scores[i], row.id(4 * (vector + i / 4 * 32) + i % 4));
            const bool passes = key <= threshold && key != padding_key;
            const unsigned mask = __ballot_sync(0xffffffffu, passes);
            if (passes) keys[count + __popc(mask & before)] = key;
            count += __popc(mask);
        }
        if (count > staged - filter_tile) {
            __syncwarp();
            flush(keys, count, list, list_count, lists.capacity);
            count = 0;
        }
    }
    __syncwarp();
    if (count > 0) flush(keys, count, list, list_count, lists.capacity);
}

struct Round {
    SelectInput input;
    std::uint32_t columns;
    std::int64_t first_row, rows;
};

template <bool with_ids>
void sample_and_filter(const Round& round, const SampleRank& rank, const CandidateLists& lists, cudaStream_t stream)
{
    const auto rows = static_cast<unsigned>(round.rows);
    sample_rows_kernel<with_ids>
        <<<rows, sample_threads, 0, stream>>>(round.input, round.columns, rank, round.first_row, lists);
    check_launch("sample_rows_kernel");
    // Enough blocks for every multiprocessor, and enough tiles for each block to outweigh its start.
    const unsigned block_tile = filter_tile * filter_warps, tiles = (round.columns + 7 + block_tile - 1) / block_tile;
    const std::int64_t blocks_wanted = 24 * detail::multiprocessors();
    const auto per_block = static_cast<unsigned>(std::clamp<std::int64_t>(tiles * round.rows / blocks_wanted, 1, 16));
    const dim3 grid((tiles + per_block - 1) / per_block, rows);
    constexpr int shared_bytes = filter_warps * staged * sizeof(SelectKey);
    allow_shared_memory(filter_rows_kernel<with_ids>);
    filter_rows_kernel<with_ids>
        <<<grid, filter_threads, shared_bytes, stream>>>(round.input, round.columns, per_block, round.first_row, lists);
    check_launch("filter_rows_kernel");
}

constexpr std::size_t aligned(std::size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

}  // namespace

namespace detail
{

GridPlan plan_grid(std::int64_t rows, std::int64_t columns, std::int64_t k)
{
    GridPlan plan{};
    plan.sample = 8 * sample_threads;
    // A short row is not sampled: its list holds all of it.
    const double most =
        columns < 4 * plan.sample ? static_cast<double>(columns) : sample_rank(columns, k, plan.sample).most;
    const std::int64_t wanted = std::max({std::int64_t{1}, std::min(k, columns), static_cast<std::int64_t>(most)});
    plan.capacity = (wanted + sort_tile - 1) / sort_tile * sort_tile;
    // The list holds all keys.
    if (plan.capacity >= columns) plan.sample = 0;
    const std::int64_t list_bytes =
        plan.capacity * static_cast<std::int64_t>(sizeof(SelectKey)) * (k > cut_most ? 2 : 1);
    constexpr std::int64_t workspace_target = std::int64_t{256} << 20, launch_scores = std::int64_t{5} << 28;
    plan.rows = std::clamp<std::int64_t>(std::min(workspace_target / list_bytes, launch_scores / (columns + 1)), 1,
                                         std::min<std::int64_t>(rows, 65535));
    const auto n = static_cast<std::size_t>(plan.rows);
    plan.bytes = n * static_cast<std::size_t>(list_bytes) + aligned(n * sizeof(unsigned)) +
                 aligned(n * sizeof(SelectKey)) + aligned(repair_words * sizeof(unsigned));
    return plan;
}

void select_by_grid(const SelectOperands& operands, const GridPlan& plan, void* workspace, cudaStream_t stream)
{
    auto* next = static_cast<char*>(workspace);
    const auto take = [&](std::size_t bytes) { return std::exchange(next, next + aligned(bytes)); };
    const auto n = static_cast<std::size_t>(plan.rows), keys = n * static_cast<std::size_t>(plan.capacity);
    CandidateLists lists{};
    lists.capacity = plan.capacity;
    lists.keys = reinterpret_cast<SelectKey*>(take(keys * sizeof(SelectKey)));
    auto* other = operands.k > cut_most ? reinterpret_cast<SelectKey*>(take(keys * sizeof(SelectKey))) : nullptr;
    lists.counts = reinterpret_cast<unsigned*>(take(n * sizeof(unsigned)));
    lists.thresholds = reinterpret_cast<SelectKey*>(take(n * sizeof(SelectKey)));
    auto* histograms = reinterpret_cast<unsigned*>(take(repair_words * sizeof(unsigned)));

    const SampleRank rank = plan.sample == 0 ? SampleRank{} : sample_rank(operands.columns, operands.k, plan.sample);
    for (std::int64_t first = 0; first < operands.rows; first += plan.rows) {
        const Round round{{operands.values, operands.ids, operands.stride},
                          static_cast<std::uint32_t>(operands.columns),
                          first,
                          std::min(plan.rows, operands.rows - first)};
        if (operands.ids != nullptr)
            sample_and_filter<true>(round, rank, lists, stream);
        else
            sample_and_filter<false>(round, rank, lists, stream);
        if (rank.lowest > 0) repair_lists(operands, first, round.rows, lists, histograms, stream);
        sort_candidates(lists.keys, other, lists.counts, round.rows, plan.capacity, operands.k,
                        operands.selected_values + first * operands.k, operands.selected_ids + first * operands.k,
                        stream);
    }
}

}  // namespace detail
}  // namespace pgwarp::cuda
