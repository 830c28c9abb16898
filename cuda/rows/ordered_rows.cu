#include "rows/ordered_rows.h"

#include <algorithm>

#include "device/error.h"
#include "rows/candidates.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda::rows
{

namespace
{

constexpr int threads = 256;
constexpr int sort_threads = 1024;
constexpr int passes = 12;
constexpr int value_digits = 8;
constexpr int bins = 256;
constexpr int positions_of_thread = 16;

struct Key {
    std::uint64_t value;
    std::uint32_t row;
};

// The state of the radix selection: the leading digits of the last wanted key.
struct State {
    Key prefix;
    std::uint32_t digits;
    std::uint32_t wanted;  // keys still wanted among those that begin with the prefix
    std::uint32_t whole;   // 1: all keys that begin with the prefix are wanted
};

__device__ Key head(const Key& key, std::uint32_t digits)
{
    if (digits == 0) return {0, 0};
    if (digits <= value_digits) return {key.value >> (64 - 8 * digits), 0};
    return {key.value, digits == passes ? key.row : key.row >> (32 - 8 * (digits - value_digits))};
}

__device__ std::uint32_t digit_at(const Key& key, std::uint32_t digit)
{
    const Key to = head(key, digit + 1);
    return digit < value_digits ? static_cast<std::uint32_t>(to.value & 255U) : to.row & 255U;
}

__device__ bool is_before(const Key& a, const Key& b)
{
    return a.value != b.value ? a.value < b.value : a.row < b.row;
}

__device__ Key key_of(double value, std::uint32_t row)
{
    return {order_of(value + 0.0), row};  // -0 is 0
}

// Sets the key of the candidate at `position`. Returns false for padding, dead rows, NaN and rows up to the cursor.
__device__ bool candidate(const PositionValues& from, const Key& cursor, std::uint32_t position, Key& key)
{
    if (position >= from.positions) return false;
    const std::uint32_t row = from.row_at[position];
    const double value = from.values[position];
    if (row == no_row || isnan(value)) return false;
    if (from.dead != nullptr && ((from.dead[position / 32] >> (position % 32)) & 1U) != 0) return false;
    key = key_of(value, row);
    return is_before(cursor, key);
}

// Computes the state after a pass from the state before it and the pass's histogram. Called by the first warp.
__device__ void advance(State& state, const std::uint32_t* histogram)
{
    const std::uint32_t lane = threadIdx.x % 32;
    std::uint32_t own = 0;
    for (int i = 0; i < bins / 32; ++i) own += histogram[lane * (bins / 32) + i];
    const std::uint32_t through = warp_prefix_sum(own);
    const std::uint32_t wanted = state.wanted;
    const std::uint32_t all = __shfl_sync(0xffffffffU, through, 31);
    __syncwarp();
    if (all <= wanted) {
        if (lane == 0) state.whole = 1;
        return;
    }
    std::uint32_t before = through - own;
    if (before >= wanted || through < wanted) return;
    std::uint32_t bin = lane * (bins / 32);
    while (before + histogram[bin] < wanted) before += histogram[bin++];
    if (state.digits < value_digits) {
        state.prefix.value = state.prefix.value << 8 | bin;
    } else {
        state.prefix.row = state.prefix.row << 8 | bin;
    }
    ++state.digits;
    state.wanted = wanted - before;
    state.whole = histogram[bin] == state.wanted ? 1 : 0;
}

// Counts the next digit of the keys that begin with the prefix. Each block computes the state again, which saves a
// launch.
__global__ __launch_bounds__(threads) void count_digits(PositionValues from, Key cursor, std::uint32_t pass,
                                                        State* states, std::uint32_t* histograms)
{
    __shared__ State state;
    __shared__ std::uint32_t counts[bins];
    if (threadIdx.x == 0) state = states[pass > 0 ? pass - 1 : 0];
    counts[threadIdx.x] = 0;
    __syncthreads();
    const bool advances = pass > 0 && state.whole == 0;
    // The first warp overwrites the state.
    __syncthreads();
    if (threadIdx.x < 32 && advances) advance(state, histograms + (pass - 1) * bins);
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0) states[pass] = state;
    if (state.whole != 0 || pass == passes) return;
    const std::uint32_t first = blockIdx.x * threads * positions_of_thread + threadIdx.x;
    for (int i = 0; i < positions_of_thread; ++i) {
        Key key;
        bool here = candidate(from, cursor, first + i * threads, key);
        std::uint32_t digit = bins;
        if (here) {
            const Key begin = head(key, state.digits);
            here = begin.value == state.prefix.value && begin.row == state.prefix.row;
            if (here) digit = digit_at(key, state.digits);
        }
        // Leading digits are mostly equal: one addition for all equal digits of a warp.
        const std::uint32_t same = __match_any_sync(0xffffffffU, digit);
        if (here && (same & ((1U << (threadIdx.x % 32)) - 1)) == 0) atomicAdd(counts + digit, __popc(same));
    }
    __syncthreads();
    if (counts[threadIdx.x] != 0) atomicAdd(histograms + pass * bins + threadIdx.x, counts[threadIdx.x]);
}

__global__ void begin_selection(std::uint32_t wanted, State* states, std::uint32_t* found)
{
    states[0] = {{0, 0}, 0, wanted, 0};
    *found = 0;
}

__global__ __launch_bounds__(threads) void gather_rows(PositionValues from, Key cursor, const State* last,
                                                       double* values, std::uint32_t* rows, std::uint32_t* found)
{
    const State state = *last;
    const std::uint32_t first = blockIdx.x * threads * positions_of_thread + threadIdx.x;
    for (int i = 0; i < positions_of_thread; ++i) {
        const std::uint32_t position = first + i * threads;
        Key key;
        if (!candidate(from, cursor, position, key)) continue;
        if (is_before(state.prefix, head(key, state.digits))) continue;
        const std::uint32_t at = atomicAdd(found, 1U);
        values[at] = from.values[position];
        rows[at] = key.row;
    }
}

__global__ __launch_bounds__(sort_threads) void sort_rows(double* values, std::uint32_t* rows,
                                                          const std::uint32_t* found)
{
    __shared__ std::uint64_t sorted_keys[ordered_most];
    __shared__ std::uint32_t sorted_rows[ordered_most];
    const int count = static_cast<int>(*found);
    for (int i = threadIdx.x; i < count; i += sort_threads) {
        const Key key = key_of(values[i], rows[i]);
        sorted_keys[i] = key.value;
        sorted_rows[i] = key.row;
    }
    sort_candidates<sort_threads>(count, sorted_keys, sorted_rows);
    for (int i = threadIdx.x; i < count; i += sort_threads) {
        values[i] = double_of_order(sorted_keys[i]);
        rows[i] = sorted_rows[i];
    }
}

}  // namespace

SelectionSpace take_selection_space(Carver& memory)
{
    return {memory.take<std::uint32_t>(passes * bins), memory.take<std::byte>((passes + 1) * sizeof(State))};
}

void first_after(const PositionValues& positions, const RowCursor& cursor, std::uint32_t wanted,
                 const SelectionSpace& space, const Answers& out, cudaStream_t stream)
{
    auto* states = reinterpret_cast<State*>(space.states);
    begin_selection<<<1, 1, 0, stream>>>(wanted, states, out.found);
    check_launch("beginning a selection");
    if (positions.positions == 0) return;
    check(cudaMemsetAsync(space.histograms, 0, passes * bins * sizeof(std::uint32_t), stream), "clearing histograms");
    const std::uint32_t of_block = threads * positions_of_thread;
    const std::uint32_t blocks = (positions.positions + of_block - 1) / of_block;
    const Key after{order_of(cursor.value + 0.0), cursor.row};
    for (std::uint32_t pass = 0; pass <= passes; ++pass) {
        // The last pass only computes the state.
        const std::uint32_t used = pass == passes ? 1 : blocks;
        count_digits<<<used, threads, 0, stream>>>(positions, after, pass, states, space.histograms);
        check_launch("counting digits");
    }
    gather_rows<<<blocks, threads, 0, stream>>>(positions, after, states + passes, out.values, out.rows, out.found);
    check_launch("gathering rows");
    if (wanted > ordered_most) return;
    sort_rows<<<1, sort_threads, 0, stream>>>(out.values, out.rows, out.found);
    check_launch("sorting rows");
}

}  // namespace pgwarp::cuda::rows
