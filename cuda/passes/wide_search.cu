#include "passes/wide_search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/canonical.cuh"
#include "passes/entry_values.h"
#include "passes/pace.h"
#include "passes/thresholds.h"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned sort_threads = 1024;
constexpr std::size_t entry_bytes = 12;  // a key and a row, in shared memory

struct WideArguments {
    RowBounds bounds;
    PreparedQueries queries;
    Proposals proposals;
    const std::uint32_t* rows;  // [slots][capacity]
    ExactAnswer answer;
    std::uint32_t first_query;
    std::uint32_t first_slot;
};

// Whether all rows with the k smallest values are among the entries. values: sorted.
__device__ bool proves(const WideArguments& arguments, std::uint32_t slot, std::uint32_t count,
                       const std::uint64_t* values)
{
    if (arguments.proposals.counts[slot] != count) return false;
    const float threshold = arguments.proposals.thresholds[slot];
    if (threshold == -INFINITY) return true;
    const std::uint32_t k = arguments.answer.k;
    if (count < k) return false;
    const double value = value_of_key(arguments.bounds.metric, values[k - 1]);
    return static_cast<double>(threshold) < lowest_score(arguments.bounds, arguments.queries.bounds[slot], value);
}

__global__ __launch_bounds__(sort_threads) void sort_entries(const WideArguments arguments)
{
    extern __shared__ std::uint64_t values[];
    const std::uint32_t slot = arguments.first_slot + blockIdx.x;
    const std::uint32_t capacity = arguments.proposals.capacity;
    const std::uint32_t count = min(arguments.proposals.counts[slot], capacity);
    const std::uint32_t width = power_of_two_from(count);
    auto* rows = reinterpret_cast<std::uint32_t*>(values + capacity);
    const std::size_t first = std::size_t{slot} * capacity;
    const auto* keys = reinterpret_cast<const std::uint64_t*>(arguments.proposals.entries);
    const bool complete = arguments.proposals.counts[slot] == count;
    for (std::uint32_t i = threadIdx.x; complete && i < width; i += sort_threads) {
        values[i] = i < count ? keys[first + i] : ~0ULL;
        rows[i] = i < count ? arguments.rows[first + i] : ~0U;
    }
    if (complete) sort_rows(values, rows, width);
    const std::uint32_t id = arguments.first_query + slot;
    if (!proves(arguments, slot, count, values)) {
        if (threadIdx.x == 0) arguments.answer.found[id] = not_proved;
        return;
    }
    const std::uint32_t found = min(arguments.answer.k, count);
    const std::size_t out = std::size_t{id} * arguments.answer.k;
    for (std::uint32_t i = threadIdx.x; i < found; i += sort_threads) {
        arguments.answer.values[out + i] = value_of_key(arguments.bounds.metric, values[i]);
        arguments.answer.rows[out + i] = rows[i];
    }
    if (threadIdx.x == 0) arguments.answer.found[id] = found;
}

void sort_all(Context& context, WideArguments arguments, cudaStream_t stream)
{
    const std::size_t shared = arguments.proposals.capacity * entry_bytes;
    allow_shared_memory(sort_entries);
    // A multiprocessor sorts some 2^26 entries a second.
    const std::uint32_t slots = static_cast<std::uint32_t>(context.multiprocessors()) *
                                std::max(1U, (std::uint32_t{1} << 16) / arguments.proposals.capacity);
    for (; arguments.first_slot < arguments.queries.count; arguments.first_slot += slots) {
        sort_entries<<<std::min(slots, arguments.queries.count - arguments.first_slot), sort_threads, shared, stream>>>(
            arguments);
        check_launch("sorting proposals");
    }
}

void search_slab(const Passes& passes, const WidePlan& plan, const Slab& slab, std::uint32_t* row_memory,
                 std::uint32_t first_query, const ExactAnswer& answer)
{
    const ExactRows& rows = *passes.rows;
    const Proposals proposals = slab.proposals(plan.capacity);
    if (plan.sample == 0) {
        open_thresholds(slab.queries, slab.thresholds, passes.stream);
    } else {
        Proposals maxima = proposals;
        maxima.maxima = slab.maxima;
        maxima.maxima_width = plan.sample / maxima_group;
        passes.filter(slab, maxima, {0, plan.sample});
        thresholds_from_maxima(slab.queries, slab.maxima, maxima.maxima_width, plan.threshold, slab.thresholds,
                               passes.stream);
    }
    passes.filter(slab, proposals, {0, rows.scored.padded_positions});
    value_entries(rows, slab.queries, proposals, row_memory, passes.stream);
    const WideArguments arguments{rows.scored.bounds, slab.queries, proposals, row_memory, answer, first_query, 0};
    sort_all(*passes.context, arguments, passes.stream);
}

}  // namespace

WidePlan make_wide_plan(std::uint32_t positions, std::uint32_t rows, std::uint32_t k, std::size_t shared_bytes)
{
    constexpr std::uint32_t largest_sample = maxima_group * 4096;
    // The largest share of groups with a wanted row: above it, maxima estimate too badly.
    constexpr double largest_share = 0.9;
    const auto most = static_cast<std::uint32_t>(std::bit_floor(shared_bytes / entry_bytes));
    WidePlan plan;
    if (positions <= most) {
        plan.capacity = std::bit_ceil(std::max(positions, fewest_entries));
        return plan;
    }
    if (k >= rows) return plan;
    plan.sample = std::min(largest_sample, std::bit_floor(positions / 2));
    // Positions are in random order, so the number of groups that hold at least one of the `keep` nearest is binomial.
    // Three times its deviation is added to the rank, and to the number of rows expected to pass.
    const double groups = plan.sample / maxima_group;
    const double keep = 1.02 * k + 32;
    const double share = 1 - std::pow(1 - keep / positions, maxima_group);
    const double deviation = 3 * std::sqrt(groups * share * (1 - share));
    const double passing = (groups * share + 2 * deviation + 4) / groups;
    if (passing > largest_share) return {};
    plan.threshold = static_cast<std::uint32_t>(std::ceil(groups * share + deviation + 2));
    const double entries = positions * (1 - std::pow(1 - passing, 1.0 / maxima_group));
    if (entries + 3 * std::sqrt(entries) > most) return {};
    plan.capacity = std::bit_ceil(static_cast<std::uint32_t>(entries + 3 * std::sqrt(entries)));
    return plan;
}

void search_widely(Context& context, const ExactRows& rows, const WidePlan& plan, const float* queries,
                   std::uint32_t count, const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel,
                   cudaStream_t stream)
{
    constexpr std::uint64_t slab_memory = std::uint64_t{256} << 20;
    const Passes passes{&context, &rows, dead.penalties != nullptr ? dead.penalties : rows.scored.penalties.data(),
                        cancel, stream};
    const auto step = static_cast<std::uint32_t>(std::max<std::uint64_t>(
        tile_queries, slab_memory / (plan.capacity * entry_bytes) / tile_queries * tile_queries));
    Pace pace(stream);
    for (std::uint32_t first = 0; first < count; first += step) {
        const std::uint32_t width = std::min(step, count - first);
        pace.step(double{1} * width * plan.capacity * rows.dimensions);
        const std::uint32_t padded = round_up(width, tile_queries);
        Slab slab(context.pool(), rows.scored, padded, plan.capacity, plan.sample / maxima_group, stream);
        slab.take(width, padded);
        DeviceArray<std::uint32_t> row_memory(context.pool(), std::size_t{width} * plan.capacity,
                                              "exact search workspace", stream);
        prepare_queries(rows.scored, queries, nullptr, first, slab.queries, stream);
        search_slab(passes, plan, slab, row_memory.data(), first, answer);
    }
}

}  // namespace pgwarp::cuda
