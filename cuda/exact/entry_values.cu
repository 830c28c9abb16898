#include <algorithm>

#include "device/error.h"
#include "distance/canonical.cuh"
#include "exact/entry_values.h"

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
    std::uint32_t first_slot;
};

__global__ __launch_bounds__(value_threads) void make_values(const ValueArguments arguments)
{
    const std::uint32_t slot = arguments.first_slot + blockIdx.y;
    const std::uint32_t capacity = arguments.proposals.capacity;
    const std::uint32_t counted = arguments.proposals.counts[slot];
    if (counted > capacity) return;  // some are lost: nothing can be proved
    const std::size_t first = std::size_t{slot} * capacity;
    const float* query = arguments.queries[slot];
    auto* keys = reinterpret_cast<std::uint64_t*>(arguments.proposals.entries);
    for (std::uint32_t i = blockIdx.x * block_pairs + threadIdx.x / canonical_lanes; i < counted;
         i += gridDim.x * block_pairs) {
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
    constexpr std::size_t launch_elements = std::size_t{1} << 30;
    const std::uint32_t capacity = proposals.capacity;
    ValueArguments arguments{rows.metric,    rows.scored.order, rows.dimensions, rows.vectors,
                             queries.floats, proposals,         row_memory,      0};
    const auto slots = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(launch_elements / (std::size_t{capacity} * rows.dimensions), 1, 32768));
    const std::uint32_t blocks = capacity / block_pairs;
    for (; arguments.first_slot < queries.count; arguments.first_slot += slots) {
        const std::uint32_t width = std::min(slots, queries.count - arguments.first_slot);
        const std::uint32_t each = std::clamp(16384 / width, std::min(8U, blocks), blocks);
        make_values<<<dim3(each, width), value_threads, 0, stream>>>(arguments);
        check_launch("valuing proposals");
    }
}

}  // namespace pgwarp::cuda
