#include "matchcount/dense_parts.h"

#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/range_gate.cuh"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = 512;

// A query's value in each byte; `no_value` where it matches none.
constexpr std::uint32_t no_value = 1;

struct BlockMemory {
    std::uint32_t least;
    std::uint32_t values[most_dense_functions + 1];
    GateMemory<threads> gate;
};

template <class Cell>
std::size_t shared_bytes(std::uint32_t rows)
{
    return sizeof(Cell) * rows + sizeof(BlockMemory);
}

// Counts four rows whose values begin at `values`, in bytes, for functions [first, last).
__device__ std::uint32_t count_four(const DenseRows& rows, const std::uint8_t* values, const BlockMemory& memory,
                                    std::uint32_t first, std::uint32_t last)
{
    std::uint32_t counts = 0;
    for (std::uint32_t f = first; f < last; ++f) {
        const std::uint32_t wanted = memory.values[f];
        if (wanted == no_value) continue;
        const std::uint32_t four = *reinterpret_cast<const std::uint32_t*>(values + f * rows.stride);
        counts += __vcmpeq4(four, wanted) & 0x01010101U;
    }
    return counts;
}

// Counters of 8 bits for fewer than 2^8 functions, else of 16.
template <class Cell>
__device__ void count_rows(const DenseRows& rows, std::uint32_t first_row, const Counters<Cell>& counters,
                           const BlockMemory& memory)
{
    for (std::uint32_t four = threadIdx.x; four < counters.rows / 4; four += threads) {
        const bool inside = std::uint64_t{first_row} + four * 4 < rows.rows;
        const std::uint8_t* values = rows.values + first_row + four * 4;
        if constexpr (sizeof(Cell) == 1) {
            counters.words[four] = inside ? count_four(rows, values, memory, 0, rows.functions) : 0;
        } else {
            std::uint32_t low = 0;
            std::uint32_t high = 0;
            for (std::uint32_t f = 0; inside && f < rows.functions; f += 255) {
                const std::uint32_t counts = count_four(rows, values, memory, f, min(f + 255, rows.functions));
                low += __byte_perm(counts, 0, 0x4140);
                high += __byte_perm(counts, 0, 0x4342);
            }
            counters.words[four * 2] = low;
            counters.words[four * 2 + 1] = high;
        }
    }
    __syncthreads();
}

extern __shared__ uint4 shared_words[];

template <class Cell>
__global__ __launch_bounds__(threads) void dense_parts_kernel(DenseRows rows, DenseQueries queries,
                                                              const std::uint32_t* wanted, CounterParts parts,
                                                              std::uint32_t first_part, std::uint32_t k,
                                                              std::uint32_t* thresholds, PassedRows passed)
{
    const std::uint32_t query = blockIdx.x;
    const std::uint32_t part = first_part + blockIdx.y;
    if (wanted != nullptr && wanted[query] == 0) return;
    auto& memory =
        *reinterpret_cast<BlockMemory*>(reinterpret_cast<std::byte*>(shared_words) + sizeof(Cell) * parts.rows);
    for (std::uint32_t f = threadIdx.x; f < rows.functions; f += threads) {
        const std::uint32_t value = queries.values[std::size_t{query} * rows.functions + f];
        memory.values[f] = value < rows.universe ? value * 0x01010101U : no_value;
    }
    if (threadIdx.x == 0) memory.least = *reinterpret_cast<volatile std::uint32_t*>(thresholds + query);
    __syncthreads();
    const std::uint32_t first_row = part * parts.rows;
    const Counters<Cell> counters{reinterpret_cast<std::uint32_t*>(shared_words), parts.rows};
    count_rows(rows, first_row, counters, memory);
    const RowFilter filter{0, min(rows.rows - first_row, parts.rows),
                           queries.dead != nullptr ? queries.dead + first_row / 32 : nullptr};
    const Passing passing = find_passing(counters, filter, k, memory.least, memory.gate);
    if (passing.full && threadIdx.x == 0) atomicMax(thresholds + query, passing.threshold);
    const std::size_t place = std::size_t{query} * passed.places + std::size_t{part} * k;
    const std::uint32_t slots = emit_passing(counters, filter, passing, memory.gate,
                                             [&](std::uint32_t slot, std::uint32_t row, std::uint32_t count) {
                                                 passed.scores[place + slot] = score_of_count(count);
                                                 passed.rows[place + slot] = first_row + row;
                                             });
    for (std::uint32_t i = slots + threadIdx.x; i < k; i += threads) passed.scores[place + i] = INFINITY;
}

template <class Cell>
void launch(const DenseRows& rows, const DenseQueries& queries, const std::uint32_t* wanted, std::uint32_t k,
            std::uint32_t* thresholds, const PassedRows& passed, Context& context, cudaStream_t stream)
{
    const CounterParts parts = dense_parts(rows, queries.count, context);
    // Where only some queries are wanted, most blocks end at once.
    const std::uint32_t at_a_time = parts_at_a_time(wanted != nullptr ? 1 : queries.count, context);
    allow_shared_memory(dense_parts_kernel<Cell>, SharedMemoryUse::before_caches);
    for (std::uint32_t first = 0; first < parts.count; first += at_a_time) {
        dense_parts_kernel<Cell>
            <<<dim3(queries.count, std::min(at_a_time, parts.count - first)), threads, shared_bytes<Cell>(parts.rows),
               stream>>>(rows, queries, wanted, parts, first, k, thresholds, passed);
        check_launch("dense match counts of parts");
    }
}

}  // namespace

CounterParts dense_parts(const DenseRows& rows, std::uint32_t queries, const Context& context)
{
    const std::size_t counter_bytes = rows.functions < 256 ? 1 : 2;
    return counter_parts(rows.rows, counter_bytes, sizeof(BlockMemory), queries, context);
}

void count_dense_parts(const DenseRows& rows, const DenseQueries& queries, const std::uint32_t* wanted, std::uint32_t k,
                       std::uint32_t* thresholds, const PassedRows& passed, Context& context, cudaStream_t stream)
{
    const auto run = rows.functions < 256 ? launch<std::uint8_t> : launch<std::uint16_t>;
    run(rows, queries, wanted, k, thresholds, passed, context, stream);
}

}  // namespace pgwarp::cuda::matchcount
