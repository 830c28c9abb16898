#include "graph/nearest.h"

#include <algorithm>
#include <stdexcept>

#include "device/error.h"
#include "device/shared_memory.h"
#include "device/wait.h"
#include "methods/graph/graph.h"
#include "passes/exact_search.h"
#include "passes/proposal_key.cuh"
#include "passes/thresholds.h"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda::graph
{

namespace
{

constexpr unsigned pick_threads = 256;
constexpr std::uint64_t entries_memory = std::uint64_t{512} << 20;

// Writes the first `width` proposals of each slot s, the row first + s, without the row itself. One block for each
// slot.
__global__ __launch_bounds__(pick_threads) void pick_rows(RowOrder order, Proposals proposals,
                                                          const std::uint64_t* left_out, std::uint32_t first,
                                                          std::uint32_t width, std::uint32_t* out)
{
    extern __shared__ std::uint64_t keys[];
    const std::uint32_t row = first + blockIdx.x;
    std::uint32_t* to = out + static_cast<std::size_t>(row) * width;
    const bool is_left_out = left_out != nullptr && (left_out[row / 64] >> (row % 64) & 1) != 0;
    const std::uint32_t count = is_left_out ? 0 : min(proposals.counts[blockIdx.x], proposals.capacity);
    const bool counted = counting_serves(count);
    const std::uint32_t sorted = counted ? count : power_of_two_from(count);
    const Proposal* entries = proposals.entries + static_cast<std::size_t>(blockIdx.x) * proposals.capacity;
    for (std::uint32_t i = threadIdx.x; i < sorted; i += pick_threads) {
        keys[i] = i < count ? proposal_key(entries[i]) : no_proposal;
    }
    counted ? count_keys(keys, count) : sort_keys(keys, sorted);
    __shared__ std::uint32_t own_place;  // place of the row among its own proposals
    if (threadIdx.x == 0) own_place = 0xffffffff;
    __syncthreads();
    const std::uint32_t seen = min(count, width + 1);
    for (std::uint32_t i = threadIdx.x; i < seen; i += pick_threads) {
        if (order.row_of(static_cast<std::uint32_t>(keys[i])) == row) own_place = i;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < width; i += pick_threads) {
        const std::uint32_t at = i < own_place ? i : i + 1;
        to[i] = at < count ? order.row_of(static_cast<std::uint32_t>(keys[at])) : no_neighbour;
    }
}

}  // namespace

void nearest_rows(Context& context, const NearestJob& job, cudaStream_t stream)
{
    const ExactRows& rows = *job.rows;
    if (rows.rows == 0) return;
    // One more, as each row is among its own proposals.
    const Plan plan = make_plan(context, rows, std::min(job.width + 1, rows.rows), rows.rows);
    if (plan.list_all || plan.best > 0) throw std::logic_error("too few rows to be compared so");
    const std::uint64_t slot_bytes =
        std::max<std::uint64_t>(plan.capacity * sizeof(Proposal), rows.scored.padded_dimensions * sizeof(__half));
    const auto step = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(entries_memory / slot_bytes / tile_queries, 1, 64) * tile_queries);
    DeviceArray<float> marked;
    const float* penalties = rows.scored.penalties.data();
    if (job.left_out != nullptr) {
        marked = DeviceArray<float>(context.pool(), rows.scored.padded_positions, "graph build", stream);
        mark_dead(rows.scored, job.left_out, marked.data(), stream);
        penalties = marked.data();
    }
    Slab slab(context.pool(), rows.scored, step, plan.capacity, plan.sample / maxima_group, stream);
    allow_shared_memory(pick_rows);
    const Passes passes{&context, &rows, penalties, job.cancel, stream};
    for (std::uint32_t first = 0; first < rows.rows; first += step) {
        if (job.cancel != nullptr) job.cancel->check();
        if (job.progress) job.progress(first);
        const std::uint32_t count = std::min(step, rows.rows - first);
        slab.take(count, round_up(count, tile_queries));
        prepare_queries(rows.scored, rows.vectors, nullptr, first, slab.queries, stream);
        passes.propose(slab, plan);
        pick_rows<<<count, pick_threads, plan.capacity * sizeof(std::uint64_t), stream>>>(
            rows.scored.order, slab.proposals(plan.capacity), job.left_out, first, job.width, job.out);
        check_launch("picking the nearest rows");
        wait_for(stream, "comparing rows");
    }
}

}  // namespace pgwarp::cuda::graph
