#include "passes/rank.h"

#include <algorithm>
#include <cmath>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/canonical.cuh"
#include "passes/proposal_key.cuh"
#include "select/shared_sort.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = 128;
constexpr unsigned most_threads = 512;  // for launches with too few blocks to fill the device with 128 threads each
// The most elements of canonical distances that one block computes: about a millisecond.
constexpr std::size_t slot_elements = std::size_t{1} << 23;

struct RankArguments {
    RowBounds bounds;
    RowOrder order;
    std::uint32_t dimensions;
    const float* vectors;
    PreparedQueries queries;
    const std::uint32_t* ids;
    std::uint32_t first;
    Proposals proposals;
    const std::uint32_t* incomplete;
    ExactAnswer answer;
    Unproven unproven;
    bool host_waits;
    std::uint32_t first_slot;
    std::uint32_t width;  // of the arrays in shared memory
};

// The arrays of one slot in shared memory.
struct Ranking {
    std::uint64_t* proposed;  // keys, best first
    std::uint64_t* values;    // keys of canonical values
    std::uint32_t* rows;
};

// Computes the canonical values of proposals [begin, end).
__device__ void evaluate(const RankArguments& arguments, const float* query, const Ranking& ranking,
                         std::uint32_t begin, std::uint32_t end)
{
    for (std::uint32_t i = begin + threadIdx.x / canonical_lanes; i < end; i += blockDim.x / canonical_lanes) {
        const std::uint32_t row = arguments.order.row_of(static_cast<std::uint32_t>(ranking.proposed[i]));
        const float* vector = arguments.vectors + std::size_t{row} * arguments.dimensions;
        const double distance = canonical_distance(arguments.bounds.metric, query, vector, arguments.dimensions);
        if (threadIdx.x % canonical_lanes != 0) continue;
        ranking.values[i] = ordered_key(emitted_value(arguments.bounds.metric, distance));
        ranking.rows[i] = row;
    }
    __syncthreads();
}

__device__ std::uint32_t block_sum(std::uint32_t value)
{
    __shared__ std::uint32_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (value > 0) atomicAdd(&total, value);
    __syncthreads();
    return total;
}

__device__ std::uint64_t block_max(std::uint64_t value)
{
    __shared__ std::uint64_t largest[32];
    value = warp_largest(value);
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) value = max(value, largest[warp]);
    return value;
}

// The number of proposals with scores of at least `lowest`.
__device__ std::uint32_t count_from(const Ranking& ranking, std::uint32_t count, double lowest)
{
    std::uint32_t own = 0;
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        own += static_cast<double>(score_of(ranking.proposed[i])) >= lowest ? 1 : 0;
    }
    return block_sum(own);
}

// Writes found[], which the host polls where host_waits. All threads of the block must call.
__device__ void report(const RankArguments& arguments, std::uint32_t id, std::uint32_t found)
{
    if (arguments.host_waits) __syncthreads();
    if (threadIdx.x != 0) return;
    // One fence after the barrier orders the writes of all threads. A fence of each thread would cost a trip to the
    // host each.
    if (arguments.host_waits) __threadfence_system();
    *static_cast<volatile std::uint32_t*>(&arguments.answer.found[id]) = found;
}

__device__ void give_up(const RankArguments& arguments, std::uint32_t id, double lowest, bool filter)
{
    if (arguments.unproven.counts == nullptr) return report(arguments, id, not_proved);
    if (threadIdx.x != 0) return;
    if (!filter || !isfinite(lowest)) {
        arguments.unproven.scan[atomicAdd(&arguments.unproven.counts[1], 1)] = id;
        return;
    }
    const std::uint32_t place = atomicAdd(&arguments.unproven.counts[0], 1);
    arguments.unproven.filter[place] = id;
    arguments.unproven.thresholds[place] = nextafterf(__double2float_rd(lowest), -INFINITY);
}

__device__ void write_answer(const RankArguments& arguments, const Ranking& ranking, std::uint32_t id,
                             std::uint32_t count)
{
    if (counting_serves(count)) {
        count_rows(ranking.values, ranking.rows, count);
    } else {
        const std::uint32_t width = power_of_two_from(count);
        for (std::uint32_t i = count + threadIdx.x; i < width; i += blockDim.x) {
            ranking.values[i] = ~0ULL;
            ranking.rows[i] = ~0U;
        }
        sort_rows(ranking.values, ranking.rows, width);
    }
    const std::uint32_t k = arguments.answer.k;
    const std::size_t out = std::size_t{id} * k;
    for (std::uint32_t i = threadIdx.x; i < min(k, count); i += blockDim.x) {
        arguments.answer.values[out + i] = value_of_key(arguments.bounds.metric, ranking.values[i]);
        arguments.answer.rows[out + i] = ranking.rows[i];
    }
    report(arguments, id, min(k, count));
}

__device__ void sort_proposed(const Ranking& ranking, std::uint32_t count)
{
    const std::uint32_t width = power_of_two_from(count);
    for (std::uint32_t i = count + threadIdx.x; i < width; i += blockDim.x) ranking.proposed[i] = no_proposal;
    sort_keys(ranking.proposed, width);
}

// Sorts at least `wanted` of the best proposals to the front and returns their number. The others follow unsorted.
__device__ std::uint32_t sort_best(const Ranking& ranking, std::uint32_t count, std::uint32_t wanted)
{
    constexpr std::uint32_t few = 256;  // counting takes time by the square of their number
    const bool forward = count > few && wanted <= min(count, blockDim.x) / 4;
    if (!forward && counting_serves(count)) {
        count_keys(ranking.proposed, count);
        return count;
    }
    const std::uint32_t best = forward ? bring_forward(ranking.proposed, ranking.values, count, wanted) : 0;
    if (best == 0) {
        sort_proposed(ranking, count);
        return count;
    }
    count_keys(ranking.proposed, best);
    return best;
}

__global__ __launch_bounds__(most_threads) void rank_slots(const RankArguments arguments)
{
    extern __shared__ std::uint64_t shared[];
    wait_for_kernel_before();
    const Ranking ranking{shared, shared + arguments.width,
                          reinterpret_cast<std::uint32_t*>(shared + 2 * arguments.width)};
    const std::uint32_t slot = arguments.first_slot + blockIdx.x;
    const std::uint32_t id = arguments.ids != nullptr ? arguments.ids[slot] : arguments.first + slot;
    const std::uint32_t k = arguments.answer.k;
    const std::uint32_t counted = arguments.proposals.counts[slot];
    const std::uint32_t count = min(counted, arguments.proposals.capacity);
    const float threshold = complete_above(arguments.proposals, slot);
    const bool complete = counted == count && (arguments.incomplete == nullptr || arguments.incomplete[slot] == 0);
    const Proposal* entries = arguments.proposals.entries + std::size_t{slot} * arguments.proposals.capacity;
    const float* query = arguments.queries.floats[slot];
    const bool everything = complete && threshold == -INFINITY;
    if (count < k && !everything) return give_up(arguments, id, 0, false);

    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) ranking.proposed[i] = proposal_key(entries[i]);
    // Rank more than k where the idle lanes make that free.
    std::uint32_t ranked = min(max(k, blockDim.x / canonical_lanes), count);
    const std::uint32_t sorted = sort_best(ranking, count, ranked + ranked / 4);
    evaluate(arguments, query, ranking, 0, ranked);
    if (!everything || count > k) {
        std::uint64_t worst = 0;
        for (std::uint32_t i = threadIdx.x; i < min(k, count); i += blockDim.x) worst = max(worst, ranking.values[i]);
        const double value = value_of_key(arguments.bounds.metric, block_max(worst));
        const double lowest = lowest_score(arguments.bounds, arguments.queries.bounds[slot], value);
        // A NaN or infinite bound proves nothing, but all rows may be among the proposals.
        if (!everything && !(complete && static_cast<double>(threshold) < lowest)) {
            return give_up(arguments, id, lowest, true);
        }
        const std::uint32_t needed =
            isfinite(lowest) && arguments.queries.usable[slot] != 0 ? count_from(ranking, count, lowest) : count;
        if (needed > ranked && std::size_t{needed - ranked} * arguments.dimensions > slot_elements) {
            return give_up(arguments, id, 0, false);
        }
        // The proposals ranked so far are also the first in the full order.
        if (needed > sorted) sort_proposed(ranking, count);
        evaluate(arguments, query, ranking, ranked, needed);
        ranked = max(ranked, needed);
    }
    write_answer(arguments, ranking, id, ranked);
}

// The slots of a launch that ends in time. The blocks of a multiprocessor share it; together they compute some 2^32
// elements a second and sort some 2^26 proposals.
std::uint32_t launch_slots(const RankJob& job, int multiprocessors)
{
    constexpr double launch_seconds = 1e-3;
    const double elements = std::min<double>(double{1} * job.proposals.capacity * job.rows->dimensions,
                                             double{1} * job.answer.k * job.rows->dimensions + slot_elements);
    const double seconds = elements / 0x1p32 + job.proposals.capacity / 0x1p26;
    return static_cast<std::uint32_t>(std::max(1.0, launch_seconds / seconds)) *
           static_cast<std::uint32_t>(multiprocessors);
}

}  // namespace

void rank_proposals(Context& context, const RankJob& job, cudaStream_t stream)
{
    RankArguments arguments{job.rows->bounds,
                            job.rows->order,
                            job.rows->dimensions,
                            job.vectors,
                            job.queries,
                            job.ids,
                            job.first,
                            job.proposals,
                            job.incomplete,
                            job.answer,
                            job.unproven,
                            job.host_waits,
                            0,
                            job.proposals.capacity};
    const std::size_t shared = arguments.width * 20;
    allow_shared_memory(rank_slots);
    const std::uint32_t slots = launch_slots(job, context.multiprocessors());
    // Large arrays in shared memory leave room for few blocks, so each gets more threads to fill the multiprocessor.
    const bool large = job.queries.count <= few_queries || job.proposals.capacity >= 2048;
    const unsigned threads = large ? most_threads : block_threads;
    for (; arguments.first_slot < job.queries.count; arguments.first_slot += slots) {
        launch_chained(true, rank_slots, std::min(slots, job.queries.count - arguments.first_slot), threads, shared,
                       stream, "ranking proposals", arguments);
        check_launch("ranking proposals");
    }
}

}  // namespace pgwarp::cuda
