#include "matchcount/dense_parts.h"

#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/range_gate.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 256;

// A query's value in each byte; `no_value` where it matches none.
constexpr std::uint32_t no_value = 1;

// Of values that the parts of a launch read: they take some two milliseconds from the memory of an H100.
constexpr std::size_t most_launch_bytes = std::size_t{4} << 30;

// Queries of a block, which read the values once.
constexpr int most_in_group = 4;

template <int group>
struct BlockMemory {
    std::uint32_t least;
    std::uint32_t values[most_dense_functions][group];
    GateMemory<threads> gate;
};

template <class Cell, int group>
std::size_t shared_bytes(std::uint32_t rows)
{
    return sizeof(Cell) * group * rows + sizeof(BlockMemory<group>);
}

// The counts of 16 rows, in bytes.
struct Sixteen {
    std::uint32_t fours[4];
};

// Counts the rows whose values begin at `values` for functions [first, last), of which there are at most 255.
template <int group>
__device__ void count_sixteen(const DenseRows& rows, const std::uint8_t* values, const BlockMemory<group>& memory,
                              std::uint32_t first, std::uint32_t last, Sixteen (&counts)[group])
{
#pragma unroll
    for (int g = 0; g < group; ++g) counts[g] = {};
#pragma unroll 8
    for (std::uint32_t f = first; f < last; ++f) {
        const uint4 four = __ldg(reinterpret_cast<const uint4*>(values + f * rows.stride));
        const std::uint32_t fours[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int g = 0; g < group; ++g) {
            const std::uint32_t wanted = memory.values[f][g];
            if (wanted == no_value) continue;
#pragma unroll
            for (int i = 0; i < 4; ++i) counts[g].fours[i] += __vcmpeq4(fours[i], wanted) & 0x01010101U;
        }
    }
}

// Counts the rows of a part, [group][rows of the part]. Counters have 8 bits for fewer than 2^8 functions, else 16.
template <class Cell, int group>
__device__ void count_rows(const DenseRows& rows, std::uint32_t first_row, std::uint32_t part_rows,
                           std::uint32_t* counters, const BlockMemory<group>& memory)
{
    constexpr std::uint32_t in_word = 4 / sizeof(Cell);
    for (std::uint32_t row = threadIdx.x * 16; row < part_rows; row += threads * 16) {
        const std::uint8_t* values = rows.values + first_row + row;
        std::uint32_t sums[group][16 / in_word] = {};
        for (std::uint32_t f = 0; std::uint64_t{first_row} + row < rows.rows && f < rows.functions; f += 255) {
            Sixteen counts[group];
            count_sixteen(rows, values, memory, f, min(f + 255, rows.functions), counts);
#pragma unroll
            for (int g = 0; g < group; ++g)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if constexpr (in_word == 4) {
                        sums[g][i] = counts[g].fours[i];
                    } else {
                        sums[g][2 * i] += __byte_perm(counts[g].fours[i], 0, 0x4140);
                        sums[g][2 * i + 1] += __byte_perm(counts[g].fours[i], 0, 0x4342);
                    }
                }
        }
#pragma unroll
        for (int g = 0; g < group; ++g)
#pragma unroll
            for (std::uint32_t i = 0; i < 16 / in_word; ++i) counters[(g * part_rows + row) / in_word + i] = sums[g][i];
    }
    __syncthreads();
}

extern __shared__ uint4 shared_words[];

// Passes the rows of one query, whose counters are counted.
template <class Cell, int group>
__device__ void pass_rows(const Counters<Cell>& counters, const RowFilter& filter, std::uint32_t query,
                          std::uint32_t part, std::uint32_t k, std::uint32_t* thresholds, const PassedRows& passed,
                          BlockMemory<group>& memory)
{
    if (threadIdx.x == 0) memory.least = *reinterpret_cast<volatile std::uint32_t*>(thresholds + query);
    __syncthreads();
    const Passing passing = find_passing(counters, filter, k, memory.least, memory.gate);
    if (passing.full && threadIdx.x == 0) atomicMax(thresholds + query, passing.threshold);
    const std::uint32_t places = min(k, counters.rows);
    const std::size_t place = std::size_t{query} * passed.places + std::size_t{part} * places;
    const std::uint32_t first_row = part * counters.rows;
    const std::uint32_t slots = emit_passing(counters, filter, passing, memory.gate,
                                             [&](std::uint32_t slot, std::uint32_t row, std::uint32_t count) {
                                                 passed.scores[place + slot] = score_of_count(count);
                                                 passed.rows[place + slot] = first_row + row;
                                             });
    for (std::uint32_t i = slots + threadIdx.x; i < places; i += threads) {
        passed.scores[place + i] = INFINITY;
        passed.rows[place + i] = padding_id;
    }
    __syncthreads();
}

template <class Cell, int group>
__global__ __launch_bounds__(threads) void dense_parts_kernel(DenseRows rows, DenseQueries queries,
                                                              const std::uint32_t* wanted, CounterParts parts,
                                                              PartLaunch launch, std::uint32_t k,
                                                              std::uint32_t* thresholds, PassedRows passed)
{
    const std::uint32_t first_query = (launch.first_query + blockIdx.x) * group;
    const std::uint32_t part = launch.first_part + blockIdx.y;
    if (wanted != nullptr && wanted[first_query] == 0) return;
    auto& memory = *reinterpret_cast<BlockMemory<group>*>(reinterpret_cast<std::byte*>(shared_words) +
                                                          sizeof(Cell) * group * parts.rows);
    for (std::uint32_t i = threadIdx.x; i < rows.functions * group; i += threads) {
        const std::uint32_t query = first_query + i % group;
        const std::uint32_t f = i / group;
        const std::uint32_t value =
            query < queries.count ? queries.values[std::size_t{query} * rows.functions + f] : most_dense_values;
        memory.values[f][i % group] = value < rows.universe ? value * 0x01010101U : no_value;
    }
    __syncthreads();
    const std::uint32_t first_row = part * parts.rows;
    auto* const counters = reinterpret_cast<std::uint32_t*>(shared_words);
    count_rows<Cell>(rows, first_row, parts.rows, counters, memory);
    const RowFilter filter{0, min(rows.rows - first_row, parts.rows),
                           queries.dead != nullptr ? queries.dead + first_row / 32 : nullptr};
    for (std::uint32_t g = 0; g < group && first_query + g < queries.count; ++g)
        pass_rows(Counters<Cell>{counters + g * parts.rows / Counters<Cell>::in_word, parts.rows}, filter,
                  first_query + g, part, k, thresholds, passed, memory);
}

// Queries that share blocks. Those that are wanted among others do not.
std::uint32_t queries_of_group(const DenseRows& rows, std::uint32_t queries, bool all)
{
    return all && queries > 1 && rows.functions < 256 ? most_in_group : 1;
}

template <class Cell, int group>
void launch(const DenseRows& rows, const DenseQueries& queries, const std::uint32_t* wanted, std::uint32_t k,
            std::uint32_t* thresholds, const PassedRows& passed, Context& context, cudaStream_t stream)
{
    const CounterParts parts = dense_parts(rows, queries.count, wanted == nullptr, context);
    const std::uint32_t groups = (queries.count + group - 1) / group;
    const auto kernel = dense_parts_kernel<Cell, group>;
    allow_shared_memory(kernel, SharedMemoryUse::before_caches);
    LaunchLimits limits = usual_limits(context);
    limits.parts = static_cast<std::uint32_t>(most_launch_bytes / (std::size_t{parts.rows} * rows.functions));
    for_each_launch(parts, groups, limits, [&](const PartLaunch& launch) {
        kernel<<<dim3(launch.queries, launch.parts), threads, shared_bytes<Cell, group>(parts.rows), stream>>>(
            rows, queries, wanted, parts, launch, k, thresholds, passed);
        check_launch("dense match counts of parts");
    });
}

}  // namespace

CounterParts dense_parts(const DenseRows& rows, std::uint32_t queries, bool all, const Context& context)
{
    constexpr std::uint32_t fewest_rows = 4096;
    const std::uint32_t group = queries_of_group(rows, queries, all);
    const std::size_t counter_bytes = (rows.functions < 256 ? 1 : 2) * group;
    return counter_parts(rows.rows, counter_bytes, sizeof(BlockMemory<most_in_group>), (queries + group - 1) / group,
                         fewest_rows, context);
}

void count_dense_parts(const DenseRows& rows, const DenseQueries& queries, const std::uint32_t* wanted, std::uint32_t k,
                       std::uint32_t* thresholds, const PassedRows& passed, Context& context, cudaStream_t stream)
{
    const bool grouped = queries_of_group(rows, queries.count, wanted == nullptr) > 1;
    const auto run = rows.functions >= 256 ? launch<std::uint16_t, 1>
                     : grouped             ? launch<std::uint8_t, most_in_group>
                                           : launch<std::uint8_t, 1>;
    run(rows, queries, wanted, k, thresholds, passed, context, stream);
}

}  // namespace pgwarp::cuda::matchcount
