#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"
#include "passes/entry_values.h"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned value_threads = 256;
constexpr std::uint32_t block_pairs = value_threads / canonical_lanes;
static_assert(block_pairs <= fewest_entries);

struct ValueArguments {
    Metric metric;
    RowOrder order;
    std::uint32_t dimensions;
    const float* vectors;
    const float** queries;
    Proposals proposals;
    std::uint32_t* rows;
    std::uint32_t first_slot = 0;
    std::uint32_t first_entry = 0;  // of each slot
    std::uint32_t end_entry = 0;
};

__global__ __launch_bounds__(value_threads) void make_values(const ValueArguments arguments)
{
    const std::uint32_t slot = arguments.first_slot + blockIdx.y;
    const std::uint32_t capacity = arguments.proposals.capacity;
    const std::uint32_t counted = arguments.proposals.counts[slot];
    if (counted > capacity) return;  // entries are lost, so nothing can be proved
    const std::size_t first = std::size_t{slot} * capacity;
    const float* query = arguments.queries[slot];
    auto* keys = reinterpret_cast<std::uint64_t*>(arguments.proposals.entries);
    const std::uint32_t end = min(counted, arguments.end_entry);
    const std::uint32_t in_grid = blockIdx.x * block_pairs + threadIdx.x / canonical_lanes;
    for (std::uint32_t i = arguments.first_entry + in_grid; i < end; i += gridDim.x * block_pairs) {
        const std::uint32_t row = arguments.order.row_of(arguments.proposals.entries[first + i].position);
        const double distance = canonical_distance(
            arguments.metric, query, arguments.vectors + std::size_t{row} * arguments.dimensions, arguments.dimensions);
        if (threadIdx.x % canonical_lanes != 0) continue;
        keys[first + i] = ordered_key(emitted_value(arguments.metric, distance));
        arguments.rows[first + i] = row;
    }
}

}  // namespace

void value_entries(const ExactRows& rows, const PreparedQueries& queries, const Proposals& proposals,
                   std::uint32_t* row_memory, cudaStream_t stream)
{
    constexpr std::uint32_t most_slots = 32768;
    constexpr std::uint32_t most_blocks = 16384;
    const std::uint32_t capacity = proposals.capacity;
    // A slot whose capacity exceeds the entries of one launch takes several launches.
    const auto pairs = static_cast<std::uint32_t>(value_launch_elements / rows.dimensions);
    const std::uint32_t step = std::min(capacity, std::max(block_pairs, pairs / block_pairs * block_pairs));
    const std::uint32_t slots = std::clamp(pairs / step, 1U, most_slots);
    const std::uint32_t blocks = (step + block_pairs - 1) / block_pairs;
    ValueArguments arguments{rows.metric,    rows.scored.order, rows.dimensions, rows.vectors,
                             queries.floats, proposals,         row_memory};
    for (std::uint32_t slot = 0; slot < queries.count; slot += slots) {
        const std::uint32_t width = std::min(slots, queries.count - slot);
        const std::uint32_t each = std::clamp(most_blocks / width, std::min(8U, blocks), blocks);
        arguments.first_slot = slot;
        for (std::uint32_t entry = 0; entry < capacity; entry += step) {
            arguments.first_entry = entry;
            arguments.end_entry = std::min(capacity, entry + step);
            make_values<<<dim3(each, width), value_threads, 0, stream>>>(arguments);
            check_launch("valuing proposals");
        }
    }
}

}  // namespace pgwarp::cuda
