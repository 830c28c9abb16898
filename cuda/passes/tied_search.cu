#include "passes/tied_search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/error.h"
#include "device/shared_memory.h"
#include "device/wait.h"
#include "distance/canonical.cuh"
#include "passes/entry_values.h"
#include "passes/pace.h"
#include "passes/thresholds.h"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned merge_threads = 512;
constexpr unsigned write_threads = 128;
constexpr std::size_t entry_bytes = 12;        // a key and a row
constexpr std::uint32_t fewest_merged = 2048;  // entries that are merged at a time
// Positions of the first range; all of its rows get their values.
constexpr std::uint32_t first_range = 4096;
constexpr std::uint32_t longest_range = 1U << 20;
constexpr std::uint32_t range_growth = 8;
static_assert(first_range % tile_rows == 0 && longest_range % tile_rows == 0 && std::has_single_bit(longest_range));

struct TiedArguments {
    RowBounds bounds;
    PreparedQueries queries;
    Proposals proposals;            // entries hold keys of values
    const std::uint32_t* rows;      // [slots][capacity], of the entries
    float* thresholds;              // [slots]
    std::uint64_t* nearest_keys;    // [slots][k], the nearest so far, in order
    std::uint32_t* nearest_rows;    // [slots][k]
    std::uint32_t* nearest_counts;  // [slots]
    std::uint32_t k;
    std::uint32_t merged;  // entries that are merged at a time: a power of two, at least k
};

// Sorts by (key, row).
__device__ void sort_all(std::uint64_t* keys, std::uint32_t* rows, std::uint32_t count)
{
    if (counting_serves(count)) return count_rows(keys, rows, count);
    const std::uint32_t width = power_of_two_from(count);
    for (std::uint32_t i = count + threadIdx.x; i < width; i += blockDim.x) {
        keys[i] = ~0ULL;
        rows[i] = ~0U;
    }
    sort_rows(keys, rows, width);
}

// Appends entries [begin, end) to the `kept` nearest; where k are kept, only entries before the last of them. Returns
// the new number.
__device__ std::uint32_t append_nearer(const TiedArguments& arguments, std::uint32_t slot, std::uint32_t begin,
                                       std::uint32_t end, std::uint32_t kept, std::uint64_t* keys, std::uint32_t* rows)
{
    __shared__ std::uint32_t appended;
    const std::size_t first = std::size_t{slot} * arguments.proposals.capacity;
    const auto* entries = reinterpret_cast<const std::uint64_t*>(arguments.proposals.entries) + first;
    const bool full = kept == arguments.k;
    const std::uint64_t last_key = full ? keys[kept - 1] : ~0ULL;
    const std::uint32_t last_row = full ? rows[kept - 1] : ~0U;
    if (threadIdx.x == 0) appended = 0;
    __syncthreads();
    for (std::uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const std::uint64_t key = entries[i];
        const std::uint32_t row = arguments.rows[first + i];
        if (key > last_key || (key == last_key && row >= last_row)) continue;
        const std::uint32_t place = kept + atomicAdd(&appended, 1);
        keys[place] = key;
        rows[place] = row;
    }
    __syncthreads();
    return kept + appended;
}

// A score that is below the scores of all rows as near as the last of the k nearest; -infinity where no bound is known.
__device__ float threshold_below(const TiedArguments& arguments, std::uint32_t slot, std::uint64_t last_key)
{
    const double value = value_of_key(arguments.bounds.metric, last_key);
    const double lowest = lowest_score(arguments.bounds, arguments.queries.bounds[slot], value);
    return isfinite(lowest) ? nextafterf(__double2float_rd(lowest), -INFINITY) : -INFINITY;
}

// Merges the entries of a range into the nearest so far and empties the slot for the next range.
__global__ __launch_bounds__(merge_threads) void merge_entries(const TiedArguments arguments)
{
    extern __shared__ std::uint64_t keys[];
    auto* rows = reinterpret_cast<std::uint32_t*>(keys + 2 * arguments.merged);
    const std::uint32_t slot = blockIdx.x;
    const std::uint32_t counted = min(arguments.proposals.counts[slot], arguments.proposals.capacity);
    if (counted == 0) return;
    const std::size_t first = std::size_t{slot} * arguments.k;
    std::uint32_t kept = arguments.nearest_counts[slot];
    for (std::uint32_t i = threadIdx.x; i < kept; i += blockDim.x) {
        keys[i] = arguments.nearest_keys[first + i];
        rows[i] = arguments.nearest_rows[first + i];
    }
    __syncthreads();
    for (std::uint32_t begin = 0; begin < counted; begin += arguments.merged) {
        const std::uint32_t end = min(begin + arguments.merged, counted);
        const std::uint32_t all = append_nearer(arguments, slot, begin, end, kept, keys, rows);
        if (all > kept) sort_all(keys, rows, all);
        kept = min(all, arguments.k);
        __syncthreads();
    }
    for (std::uint32_t i = threadIdx.x; i < kept; i += blockDim.x) {
        arguments.nearest_keys[first + i] = keys[i];
        arguments.nearest_rows[first + i] = rows[i];
    }
    if (threadIdx.x != 0) return;
    arguments.nearest_counts[slot] = kept;
    arguments.proposals.counts[slot] = 0;
    if (kept == arguments.k) {
        const float known = threshold_below(arguments, slot, keys[kept - 1]);
        arguments.thresholds[slot] = fmaxf(arguments.thresholds[slot], known);
    }
}

__global__ void write_nearest(const TiedArguments arguments, const std::uint32_t* ids, ExactAnswer answer)
{
    const std::uint32_t slot = blockIdx.x;
    const std::uint32_t id = ids[slot];
    const std::uint32_t found = arguments.nearest_counts[slot];
    const std::size_t from = std::size_t{slot} * arguments.k;
    const std::size_t to = std::size_t{id} * answer.k;
    for (std::uint32_t i = threadIdx.x; i < found; i += blockDim.x) {
        answer.values[to + i] = value_of_key(arguments.bounds.metric, arguments.nearest_keys[from + i]);
        answer.rows[to + i] = arguments.nearest_rows[from + i];
    }
    if (threadIdx.x == 0) answer.found[id] = arguments.queries.usable[slot] != 0 ? found : not_proved;
}

// The most entries that fit in a block's shared memory beside the same number of nearest rows.
std::uint32_t most_merged(const Context& context)
{
    return static_cast<std::uint32_t>(std::bit_floor(context.shared_bytes_per_block() / entry_bytes) / 2);
}

// Device memory of one slab of queries that other searches do not need.
struct Nearest {
    Nearest(MemoryPool& pool, std::uint32_t count, std::uint32_t capacity, std::uint32_t k, cudaStream_t stream)
        : entry_rows(pool, std::size_t{count} * capacity, "tied search", stream),
          keys(pool, std::size_t{count} * k, "tied search", stream),
          rows(pool, std::size_t{count} * k, "tied search", stream),
          counts(pool, count, "tied search", stream)
    {
        check(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream), "clearing counts");
    }
    DeviceArray<std::uint32_t> entry_rows;
    DeviceArray<std::uint64_t> keys;
    DeviceArray<std::uint32_t> rows;
    DeviceArray<std::uint32_t> counts;
};

// Searches all positions, range by range. The slab's queries must be prepared.
void search_slab(const Passes& passes, const Slab& slab, const TiedArguments& arguments, std::uint32_t* entry_rows,
                 Pace& pace)
{
    const std::uint32_t positions = passes.rows->scored.padded_positions;
    const std::size_t shared = 2 * arguments.merged * entry_bytes;
    const Proposals& proposals = arguments.proposals;
    open_thresholds(slab.queries, slab.thresholds, passes.stream);
    std::uint32_t length = std::min(first_range, proposals.capacity);
    for (std::uint32_t begin = 0; begin < positions;) {
        const std::uint32_t end = begin + std::min(length, positions - begin);
        pace.step(double{1} * slab.queries.count * (end - begin) * passes.rows->dimensions);
        passes.filter(slab, proposals, {begin, end});
        value_entries(*passes.rows, slab.queries, proposals, entry_rows, passes.stream);
        merge_entries<<<slab.queries.count, merge_threads, shared, passes.stream>>>(arguments);
        check_launch("merging proposals");
        begin = end;
        length = std::min(range_growth * length, proposals.capacity);
    }
}

}  // namespace

bool serves_tied(const Context& context, const ExactRows& rows, std::uint32_t k)
{
    return std::min(k, rows.rows) <= most_merged(context);
}

void search_tied(Context& context, const ExactRows& rows, const float* queries, std::span<const std::uint32_t> ids,
                 const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel, cudaStream_t stream)
{
    constexpr std::uint64_t slab_memory = std::uint64_t{256} << 20;
    const Passes passes{&context, &rows, dead.penalties != nullptr ? dead.penalties : rows.scored.penalties.data(),
                        cancel, stream};
    const std::uint32_t k = std::min(answer.k, rows.rows);
    const std::uint32_t merged = std::min(std::max(std::bit_ceil(k), fewest_merged), most_merged(context));
    allow_shared_memory(merge_entries);
    DeviceArray<std::uint32_t> numbers(context.pool(), ids.size(), "tied search", stream);
    send(numbers.data(), ids.data(), numbers.bytes(), stream, "sending queries' numbers");
    Pace pace(stream);
    for (std::uint32_t first = 0; first < ids.size(); first += tile_queries) {
        const std::uint32_t count = std::min(tile_queries, static_cast<std::uint32_t>(ids.size()) - first);
        // Streaming kernels read only the slots of queries.
        const bool streamed = count <= streamed_queries;
        const std::uint32_t slots = streamed ? streamed_queries : tile_queries;
        const auto fitting = static_cast<std::uint32_t>(std::bit_floor(slab_memory / (slots * entry_bytes)));
        const std::uint32_t positions = std::min(rows.scored.padded_positions, longest_range);
        const std::uint32_t capacity = std::min(fitting, std::bit_ceil(positions));
        Slab slab(context.pool(), rows.scored, slots, capacity, 0, stream);
        slab.take(count, streamed ? count : tile_queries);
        Nearest nearest(context.pool(), count, capacity, k, stream);
        prepare_queries(rows.scored, queries, numbers.data() + first, 0, slab.queries, stream);
        const TiedArguments arguments{rows.scored.bounds,
                                      slab.queries,
                                      slab.proposals(capacity),
                                      nearest.entry_rows.data(),
                                      slab.thresholds,
                                      nearest.keys.data(),
                                      nearest.rows.data(),
                                      nearest.counts.data(),
                                      k,
                                      merged};
        search_slab(passes, slab, arguments, nearest.entry_rows.data(), pace);
        write_nearest<<<count, write_threads, 0, stream>>>(arguments, numbers.data() + first, answer);
        check_launch("writing the nearest rows");
    }
}

}  // namespace pgwarp::cuda
