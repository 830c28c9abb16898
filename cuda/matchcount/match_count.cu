#include "matchcount/match_count.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "device/carver.h"
#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/best_counts.h"
#include "matchcount/counter_parts.h"
#include "matchcount/range_count.cuh"
#include "methods/errors.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

// A part of a range, whose counters fit into shared memory.
struct Part {
    std::uint32_t range;
    std::uint32_t first;  // row, less the range's first
    std::uint32_t rows;
};

template <int threads>
struct BlockMemory {
    std::uint32_t least;
    SliceMemory<threads> slices;
    GateMemory<threads> gate;
};

template <class Cell>
std::size_t shared_bytes(std::uint32_t rows)
{
    return sizeof(Cell) * rows + sizeof(BlockMemory<count_threads<Cell>>);
}

template <class Cell>
CounterParts parts_of(const KeywordListsView& lists, std::uint32_t queries, const Context& context)
{
    // A block may have to read the lists of a whole section.
    return counter_parts(lists.rows, sizeof(Cell), shared_bytes<Cell>(0), queries, section_rows, context);
}

// A launch takes about a millisecond of an H100, unless a single block takes longer.
LaunchLimits limits_of(const CountQueries& queries, const CounterParts& parts, const Context& context)
{
    constexpr std::uint64_t most_postings = std::uint64_t{1} << 31;
    LaunchLimits limits = usual_limits(context);
    const std::uint64_t of_block = queries.postings / std::max(1U, parts.count) + 1;
    const std::uint64_t fewest = static_cast<std::uint64_t>(context.multiprocessors()) * 2;
    limits.blocks =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most_postings / of_block, fewest, limits.blocks));
    return limits;
}

// The places of a query for searches of k rows.
std::uint32_t places_of(const CounterParts& parts, std::uint32_t k)
{
    return parts.count * std::min(k, parts.rows);
}

__device__ Part part_of(const CounterParts& parts, std::uint32_t number)
{
    return {number / parts.in_range, number % parts.in_range * parts.rows, parts.rows};
}

// Returns the rows of a part that a query may have, relative to the part's first row.
__device__ RowFilter filter_of(const KeywordListsView& lists, const CountQueries& queries, const Part& part,
                               std::uint32_t query)
{
    const std::uint32_t first = part.range * range_rows + part.first;
    const RowWindow window = queries.windows != nullptr ? queries.windows[query] : RowWindow{0, lists.rows};
    const std::uint32_t last = min(window.last, lists.rows);
    return {window.first > first ? window.first - first : 0, last > first ? min(last - first, part.rows) : 0,
            queries.dead != nullptr ? queries.dead + first / 32 : nullptr};
}

extern __shared__ uint4 shared_words[];

// Counts a query in a part of a range; the counters lie at the start of dynamic shared memory.
template <class Cell, bool whole>
__device__ Counters<Cell> count_part(const KeywordListsView& lists, const CountQueries& queries, const Part& part,
                                     std::uint32_t query, BlockMemory<count_threads<Cell>>& memory)
{
    const Counters<Cell> counters{reinterpret_cast<std::uint32_t*>(shared_words), part.rows};
    const std::uint32_t begin = queries.item_offsets[query];
    count_range<Cell, whole>(lists, part.range, queries.items + begin, queries.item_offsets[query + 1] - begin,
                             counters, part.first, memory.slices);
    return counters;
}

template <class Cell>
__device__ BlockMemory<count_threads<Cell>>& block_memory(std::uint32_t rows)
{
    return *reinterpret_cast<BlockMemory<count_threads<Cell>>*>(reinterpret_cast<std::byte*>(shared_words) +
                                                                sizeof(Cell) * rows);
}

// A block counts a query in a part, and passes at most k rows.
template <class Cell, bool whole>
__global__ __launch_bounds__(count_threads<Cell>,
                             count_blocks<Cell>) void top_counts_kernel(KeywordListsView lists, CountQueries queries,
                                                                        CounterParts parts, PartLaunch launch,
                                                                        std::uint32_t k, std::uint32_t* thresholds,
                                                                        PassedRows passed)
{
    constexpr int threads = count_threads<Cell>;
    const std::uint32_t query = launch.first_query + blockIdx.x;
    const std::uint32_t number = launch.first_part + blockIdx.y;
    const Part part = part_of(parts, number);
    const RowFilter filter = filter_of(lists, queries, part, query);
    const std::uint32_t places = min(k, part.rows);
    const std::size_t place = std::size_t{query} * passed.places + std::size_t{number} * places;
    float* scores = passed.scores + place;
    std::uint32_t* rows = passed.rows + place;
    std::uint32_t slots = 0;
    if (filter.begin < filter.end) {
        BlockMemory<threads>& memory = block_memory<Cell>(part.rows);
        const Counters<Cell> counters = count_part<Cell, whole>(lists, queries, part, query, memory);
        // All threads take the same threshold, while other blocks raise it.
        if (threadIdx.x == 0) memory.least = *reinterpret_cast<volatile std::uint32_t*>(thresholds + query);
        __syncthreads();
        const Passing passing = find_passing(counters, filter, k, memory.least, memory.gate);
        if (passing.full && threadIdx.x == 0) atomicMax(thresholds + query, passing.threshold);
        const std::uint32_t first_row = part.range * range_rows + part.first;
        slots = emit_passing(counters, filter, passing, memory.gate,
                             [&](std::uint32_t slot, std::uint32_t row, std::uint32_t count) {
                                 scores[slot] = score_of_count(count);
                                 rows[slot] = first_row + row;
                             });
    }
    for (std::uint32_t i = slots + threadIdx.x; i < places; i += threads) {
        scores[i] = INFINITY;
        rows[i] = padding_id;
    }
}

// A block passes all rows of a query in a part that reach the query's least count.
template <class Cell, bool whole>
__global__ __launch_bounds__(count_threads<Cell>,
                             count_blocks<Cell>) void rows_of_counts_kernel(KeywordListsView lists,
                                                                            CountQueries queries, CounterParts parts,
                                                                            PartLaunch launch, std::uint32_t capacity,
                                                                            CountedRows out)
{
    constexpr int threads = count_threads<Cell>;
    const std::uint32_t query = launch.first_query + blockIdx.x;
    const Part part = part_of(parts, launch.first_part + blockIdx.y);
    const RowFilter filter = filter_of(lists, queries, part, query);
    if (filter.begin >= filter.end) return;
    const std::uint32_t least = queries.least != nullptr ? max(queries.least[query], 1U) : 1U;
    const Counters<Cell> counters = count_part<Cell, whole>(lists, queries, part, query, block_memory<Cell>(part.rows));
    const std::uint32_t first_row = part.range * range_rows + part.first;
    for (std::uint32_t word = threadIdx.x * 4; word < counters.rows / counters.in_word; word += threads * 4)
        counters.visit_four(word, least, [&](std::uint32_t row, std::uint32_t count) {
            if (!filter.passes(row)) return;
            const std::uint32_t slot = atomicAdd(out.found + query, 1);
            if (slot >= capacity) return;
            out.rows[std::size_t{query} * capacity + slot] = first_row + row;
            if (out.counts != nullptr) out.counts[std::size_t{query} * capacity + slot] = count;
        });
}

__global__ void open_thresholds_kernel(const std::uint32_t* least, std::uint32_t count, std::uint32_t* thresholds)
{
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query < count) thresholds[query] = least != nullptr ? max(least[query], 1U) : 1U;
}

// Calls run(cell, whole) with a value of the counters' type and std::bool_constant, by the bound and the device.
template <class Run>
void with_counters(const KeywordListsView& lists, const CountQueries& queries, const Context& context, const Run& run)
{
    const auto with = [&]<class Cell>(Cell cell) {
        const CounterParts parts = parts_of<Cell>(lists, queries.count, context);
        if (parts.in_range == 1)
            run(cell, std::true_type{}, parts);
        else
            run(cell, std::false_type{}, parts);
    };
    if (queries.bound < 1U << 8) return with(std::uint8_t{});
    if (queries.bound < 1U << 16) return with(std::uint16_t{});
    with(std::uint32_t{});
}

struct Layout {
    std::uint32_t* thresholds;
    float* scores;
    std::uint32_t* rows;
    std::byte* selection;
};

Layout lay_out(std::uint32_t queries, std::uint32_t places, std::uint32_t k, Carver& carver)
{
    Layout layout{};
    layout.thresholds = carver.take<std::uint32_t>(queries);
    layout.scores = carver.take<float>(std::size_t{queries} * places);
    layout.rows = carver.take<std::uint32_t>(std::size_t{queries} * places);
    layout.selection = carver.take<std::byte>(best_counts_workspace_bytes(queries, places, k));
    return layout;
}

}  // namespace

std::uint32_t count_bound(const KeywordLists& lists, std::span<const Item> items)
{
    std::vector<std::uint32_t> firsts;
    std::vector<std::uint32_t> lasts;
    std::uint64_t by_items = 0;
    for (const Item& item : items) {
        if (item.last < item.first) continue;
        const std::uint64_t repeats = (std::uint64_t{item.last} - item.first + 1) * lists.most_repeats();
        by_items += std::min<std::uint64_t>(lists.longest_row(), repeats);
        firsts.push_back(item.first);
        lasts.push_back(item.last);
    }
    std::sort(firsts.begin(), firsts.end());
    std::sort(lasts.begin(), lasts.end());
    std::uint64_t overlapping = 0;
    std::size_t ended = 0;
    for (std::size_t begun = 0; begun < firsts.size(); ++begun) {
        while (lasts[ended] < firsts[begun]) ++ended;
        overlapping = std::max<std::uint64_t>(overlapping, begun + 1 - ended);
    }
    const std::uint64_t bound = std::min(by_items, overlapping * lists.longest_row());
    if (bound >= std::uint64_t{1} << 31) throw BadRequest("a match count may exceed 2^31 - 1");
    return static_cast<std::uint32_t>(bound);
}

std::size_t top_counts_workspace_bytes(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t k,
                                       const Context& context)
{
    std::size_t bytes = 0;
    with_counters(lists, queries, context, [&](auto, auto, const CounterParts& parts) {
        bytes = carved_bytes([&](Carver& carver) { (void)lay_out(queries.count, places_of(parts, k), k, carver); });
    });
    return bytes;
}

void top_counts(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t k, const CountedRows& out,
                std::byte* workspace, Context& context, cudaStream_t stream)
{
    if (k == 0) throw std::invalid_argument("k is 0");
    if (queries.count == 0) return;
    with_counters(
        lists, queries, context, [&]<class Cell, bool whole>(Cell, std::bool_constant<whole>, CounterParts parts) {
            Carver carver(workspace);
            const Layout layout = lay_out(queries.count, places_of(parts, k), k, carver);
            const PassedRows passed{queries.count, places_of(parts, k), layout.scores, layout.rows};
            open_thresholds_kernel<<<(queries.count + 255) / 256, 256, 0, stream>>>(queries.least, queries.count,
                                                                                    layout.thresholds);
            check_launch("thresholds of counts");
            allow_shared_memory(top_counts_kernel<Cell, whole>, SharedMemoryUse::before_caches);
            for_each_launch(parts, queries.count, limits_of(queries, parts, context), [&](const PartLaunch& launch) {
                top_counts_kernel<Cell, whole>
                    <<<dim3(launch.queries, launch.parts), count_threads<Cell>, shared_bytes<Cell>(parts.rows),
                       stream>>>(lists, queries, parts, launch, k, layout.thresholds, passed);
                check_launch("match counts");
            });
            best_counts(passed, {queries.least == nullptr, lists.rows, queries.windows, queries.dead}, k, out,
                        layout.selection, stream);
        });
}

void rows_of_counts(const KeywordListsView& lists, const CountQueries& queries, std::uint32_t capacity,
                    const CountedRows& out, Context& context, cudaStream_t stream)
{
    if (queries.count == 0) return;
    check(cudaMemsetAsync(out.found, 0, queries.count * sizeof(std::uint32_t), stream), "counting rows");
    with_counters(
        lists, queries, context, [&]<class Cell, bool whole>(Cell, std::bool_constant<whole>, CounterParts parts) {
            allow_shared_memory(rows_of_counts_kernel<Cell, whole>, SharedMemoryUse::before_caches);
            for_each_launch(parts, queries.count, limits_of(queries, parts, context), [&](const PartLaunch& launch) {
                rows_of_counts_kernel<Cell, whole>
                    <<<dim3(launch.queries, launch.parts), count_threads<Cell>, shared_bytes<Cell>(parts.rows),
                       stream>>>(lists, queries, parts, launch, capacity, out);
                check_launch("match counts");
            });
        });
}

}  // namespace pgwarp::cuda::matchcount
