// Proposals for few queries: every row is read once, at the speed of the memory, and compared with up to four queries
// in shared memory. Eight lanes share a row, 16 bytes each at a time; a warp works on 32 positions together, so that
// each lane has eight loads under way and ends with the score of one position.
#include <algorithm>

#include "device/chained_launch.cuh"
#include "device/error.h"
#include "device/shared_memory.h"
#include "distance/score_bits.cuh"
#include "distance/tile_epilogue.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

namespace
{

constexpr unsigned block_threads = best_group;
constexpr std::uint32_t warp_positions = 32;
constexpr std::uint32_t row_lanes = 8;
constexpr std::uint32_t lane_rows = 8;
constexpr std::size_t fixed_bytes = 2048;  // at least the shared memory that static variables take

struct StreamArguments {
    Proposals out;
    RowOrder order;
    const __half* halves;
    const float* vectors;
    const float* penalties;
    PreparedQueries queries;
    std::uint32_t first_slot;
    std::uint32_t slots;
    std::uint32_t dimensions;         // of a row in memory
    std::uint32_t padded_dimensions;  // of a query in shared memory
    std::uint32_t begin;
    std::uint32_t end;
    bool aligned;  // float rows: 16-byte loads are legal
};

// The piece of a row that a lane reads at a time.
struct HalfPiece {
    static constexpr std::uint32_t elements = 8;
    uint4 bits;

    __device__ static std::uint32_t index_of(const StreamArguments&, std::uint32_t position) { return position; }
    __device__ void load(const StreamArguments& arguments, std::uint32_t index, std::uint32_t element)
    {
        bits = __ldcs(
            reinterpret_cast<const uint4*>(arguments.halves + std::size_t{index} * arguments.dimensions + element));
    }
    __device__ void unpack(float (&values)[elements]) const
    {
        const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&words[i]));
            values[2 * i] = pair.x;
            values[2 * i + 1] = pair.y;
        }
    }
};

struct FloatPiece {
    static constexpr std::uint32_t elements = 4;
    float4 value;

    // A warp's positions lie in one group of the order: their rows follow each other.
    __device__ static std::uint32_t index_of(const StreamArguments& arguments, std::uint32_t position)
    {
        return arguments.order.row_of(position);
    }
    __device__ void load(const StreamArguments& arguments, std::uint32_t row, std::uint32_t element)
    {
        value = {0, 0, 0, 0};
        if (row >= arguments.order.rows || element >= arguments.dimensions) return;
        const float* from = arguments.vectors + std::size_t{row} * arguments.dimensions + element;
        if (arguments.aligned) {
            value = __ldcs(reinterpret_cast<const float4*>(from));
            return;
        }
        value.x = from[0];
        if (element + 1 < arguments.dimensions) value.y = from[1];
        if (element + 2 < arguments.dimensions) value.z = from[2];
        if (element + 3 < arguments.dimensions) value.w = from[3];
    }
    __device__ void unpack(float (&values)[elements]) const
    {
        values[0] = value.x;
        values[1] = value.y;
        values[2] = value.z;
        values[3] = value.w;
    }
};

template <ScoreKind kind>
__device__ float add_term(float sum, float query, float row)
{
    if constexpr (kind == ScoreKind::float_l2) {
        const float difference = query - row;
        return fmaf(-difference, difference, sum);
    } else if constexpr (kind == ScoreKind::float_l1) {
        return sum - fabsf(query - row);
    } else {
        return fmaf(query, row, sum);
    }
}

// From eight partial sums in each of eight lanes to the sum of row `lane` in each lane.
__device__ float transpose_sum(float (&sums)[lane_rows])
{
    const std::uint32_t lane = threadIdx.x % row_lanes;
#pragma unroll
    for (std::uint32_t width = lane_rows / 2; width > 0; width /= 2) {
        const bool upper = (lane & width) != 0;
#pragma unroll
        for (std::uint32_t i = 0; i < width; ++i) {
            const float send = upper ? sums[i] : sums[i + width];
            const float keep = upper ? sums[i + width] : sums[i];
            sums[i] = keep + __shfl_xor_sync(~0U, send, width);
        }
    }
    return sums[0];
}

__device__ void load_queries(const StreamArguments& arguments, bool half, std::uint32_t width, float* shared)
{
    for (std::uint32_t i = threadIdx.x; i < width * arguments.padded_dimensions; i += block_threads) {
        const std::uint32_t d = i % arguments.padded_dimensions;
        const std::uint32_t slot = arguments.first_slot + min(i / arguments.padded_dimensions, arguments.slots - 1);
        if (half) {
            shared[i] = __half2float(arguments.queries.halves[std::size_t{slot} * arguments.padded_dimensions + d]);
        } else {
            shared[i] = d < arguments.dimensions ? arguments.queries.floats[slot][d] : 0.0F;
        }
    }
    __syncthreads();
}

// Sums for `width` queries: sums[q][r] of row `index` + r, the r-th of this lane's eight, over this lane's elements.
template <ScoreKind kind, class Piece, int width>
__device__ void accumulate(const StreamArguments& arguments, const float* queries, std::uint32_t index,
                           float (&sums)[width][lane_rows])
{
    const std::uint32_t lane = threadIdx.x % row_lanes;
#pragma unroll 2
    for (std::uint32_t element = lane * Piece::elements; element < arguments.padded_dimensions;
         element += row_lanes * Piece::elements) {
        Piece pieces[lane_rows];
#pragma unroll
        for (std::uint32_t r = 0; r < lane_rows; ++r) pieces[r].load(arguments, index + r, element);
        float query[width][Piece::elements];
#pragma unroll
        for (int q = 0; q < width; ++q) {
#pragma unroll
            for (std::uint32_t e = 0; e < Piece::elements; e += 4) {
                *reinterpret_cast<float4*>(&query[q][e]) =
                    *reinterpret_cast<const float4*>(queries + q * arguments.padded_dimensions + element + e);
            }
        }
#pragma unroll
        for (std::uint32_t r = 0; r < lane_rows; ++r) {
            float values[Piece::elements];
            pieces[r].unpack(values);
#pragma unroll
            for (int q = 0; q < width; ++q) {
#pragma unroll
                for (std::uint32_t e = 0; e < Piece::elements; ++e) {
                    sums[q][r] = add_term<kind>(sums[q][r], query[q][e], values[e]);
                }
            }
        }
    }
}

// Appends the best of the block's scores, of which each thread holds one and counts those before it. The last bits of a
// score make way for the thread's number, so that no two are equal; left_out holds the true largest score left out.
__device__ void append_best(const Proposals& out, std::uint32_t slot, std::uint32_t position, float score)
{
    __shared__ __align__(16) std::uint32_t order[block_threads];
    __shared__ std::uint32_t begin;
    const std::uint32_t own = (descending_bits(score) & ~(block_threads - 1)) | threadIdx.x;
    __syncthreads();
    order[threadIdx.x] = own;
    __syncthreads();
    std::uint32_t place = 0;
#pragma unroll 8
    for (std::uint32_t j = 0; j < block_threads; j += 4) {
        const uint4 four = *reinterpret_cast<const uint4*>(&order[j]);
        place += (four.x < own ? 1 : 0) + (four.y < own ? 1 : 0) + (four.z < own ? 1 : 0) + (four.w < own ? 1 : 0);
    }
    const bool is_row = score > -INFINITY;  // positions without a row come last
    const bool is_best = is_row && place < out.best;
    const int appended = __syncthreads_count(is_best);
    if (threadIdx.x == 0) begin = atomicAdd(&out.counts[slot], appended);
    const std::uint32_t left_out = warp_largest(is_row && !is_best ? ~descending_bits(score) : 0U);
    if (threadIdx.x % 32 == 0 && left_out > 0) atomicMax(&out.left_out[slot], left_out);
    __syncthreads();
    if (is_best && begin + place < out.capacity)
        out.entries[std::size_t{slot} * out.capacity + begin + place] = {score, position};
}

template <ScoreKind kind, class Piece, int width>
__global__ __launch_bounds__(block_threads) void stream_rows(const StreamArguments arguments)
{
    extern __shared__ __align__(16) float shared_queries[];
    wait_for_kernel_before();
    let_next_start();  // otherwise blocks of a build take the multiprocessors that become free
    load_queries(arguments, Piece::elements == 8, width, shared_queries);
    const std::uint32_t lane = threadIdx.x % 32;
    const bool maxima = arguments.out.maxima != nullptr;
    const bool best = arguments.out.left_out != nullptr;
    float threshold[width];
    float factor[width];
    float own[width];  // with `best`: scores of this thread's one position
#pragma unroll
    for (int q = 0; q < width; ++q) {
        const std::uint32_t slot = arguments.first_slot + q;
        const bool filters = q < static_cast<int>(arguments.slots) && !maxima && !best;
        threshold[q] = filters ? arguments.out.thresholds[slot] : INFINITY;
        own[q] = -INFINITY;
        factor[q] = arguments.queries.factors[arguments.first_slot + min(q, static_cast<int>(arguments.slots) - 1)];
    }
    const std::uint32_t warps = gridDim.x * (block_threads / 32);
    for (std::uint32_t first = arguments.begin + (blockIdx.x * (block_threads / 32) + threadIdx.x / 32) * 32;
         first < arguments.end; first += warps * warp_positions) {
        const std::uint32_t position = first + lane;
        const float penalty = arguments.penalties[position];  // loaded early, so that the end does not wait for it
        float sums[width][lane_rows] = {};
        accumulate<kind, Piece, width>(arguments, shared_queries,
                                       Piece::index_of(arguments, first) + lane / row_lanes * lane_rows, sums);
#pragma unroll
        for (int q = 0; q < width; ++q) {
            const float score = fmaf(transpose_sum(sums[q]), factor[q], -penalty);
            if (best) {
                own[q] = score;
            } else if (maxima) {
                const float largest = warp_largest(score);
                if (lane == 0 && q < static_cast<int>(arguments.slots)) {
                    arguments.out.maxima[std::size_t{arguments.first_slot + q} * arguments.out.maxima_width +
                                         (first - arguments.begin) / maxima_group] = largest;
                }
            } else if (score > threshold[q]) {
                append(arguments.out, arguments.first_slot + q, position, score);
            }
        }
    }
    if (!best) return;
    const std::uint32_t position = arguments.begin + blockIdx.x * block_threads + threadIdx.x;
    for (int q = 0; q < width && q < static_cast<int>(arguments.slots); ++q) {
        const std::uint32_t slot = arguments.first_slot + q;
        if (arguments.queries.usable[slot] != 0) {
            append_best(arguments.out, slot, position, own[q]);
        } else if (threadIdx.x == 0) {
            atomicMax(&arguments.out.left_out[slot], ~descending_bits(INFINITY));
        }
    }
}

template <ScoreKind kind, class Piece, int width>
void launch(Context& context, const StreamArguments& arguments, cudaStream_t stream)
{
    const auto kernel = stream_rows<kind, Piece, width>;
    const std::size_t shared = std::size_t{width} * arguments.padded_dimensions * sizeof(float);
    if (shared > 48 << 10) {
        allow_shared_memory(kernel);
    }
    std::uint32_t blocks = (arguments.end - arguments.begin + block_threads - 1) / block_threads;
    if (arguments.out.left_out == nullptr) {
        int resident = 1;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, block_threads, shared), "stream kernel");
        blocks = std::min(blocks, static_cast<std::uint32_t>(context.multiprocessors() * std::max(1, resident)));
    }
    launch_chained(true, kernel, blocks, block_threads, shared, stream, "streaming rows", arguments);
    check_launch("streaming rows");
}

template <int width>
void launch_kind(Context& context, ScoreKind kind, const StreamArguments& arguments, cudaStream_t stream)
{
    switch (kind) {
        case ScoreKind::half_l2:
        case ScoreKind::half_dot:
            return launch<ScoreKind::half_dot, HalfPiece, width>(context, arguments, stream);
        case ScoreKind::float_l2:
            return launch<ScoreKind::float_l2, FloatPiece, width>(context, arguments, stream);
        case ScoreKind::float_dot:
            return launch<ScoreKind::float_dot, FloatPiece, width>(context, arguments, stream);
        case ScoreKind::float_l1:
            return launch<ScoreKind::float_l1, FloatPiece, width>(context, arguments, stream);
    }
}

}  // namespace

void propose_by_streaming(Context& context, const ProposalJob& job, cudaStream_t stream)
{
    constexpr std::size_t launch_bytes = std::size_t{2} << 30;  // at 2 TB/s 1 ms
    const ScoreKind kind = job.rows->bounds.kind;
    const bool half = kind == ScoreKind::half_l2 || kind == ScoreKind::half_dot;
    StreamArguments arguments{};
    arguments.out = job.out;
    arguments.order = job.rows->order;
    arguments.halves = job.rows->halves.data();
    arguments.vectors = job.vectors;
    arguments.penalties = job.penalties;
    arguments.queries = job.queries;
    arguments.dimensions = half ? job.rows->padded_dimensions : job.rows->dimensions;
    arguments.padded_dimensions = job.rows->padded_dimensions;
    arguments.aligned = job.rows->dimensions % 4 == 0;
    const std::size_t row_bytes = std::size_t{arguments.dimensions} * (half ? 2 : 4);
    const auto launch_positions = static_cast<std::uint32_t>(
        std::max<std::size_t>(block_threads, launch_bytes / row_bytes / block_threads * block_threads));
    const std::size_t query_bytes = std::size_t{arguments.padded_dimensions} * sizeof(float);
    const std::uint32_t wide = 4 * query_bytes + fixed_bytes <= context.shared_bytes_per_block() ? 4 : 1;
    for (std::uint32_t slot = 0; slot < job.queries.count;) {
        arguments.first_slot = slot;
        arguments.slots = job.queries.count - slot > 1 ? std::min(wide, job.queries.count - slot) : 1;
        for (std::uint32_t begin = job.range.begin; begin < job.range.end; begin += launch_positions) {
            arguments.begin = begin;
            arguments.end = begin + std::min(launch_positions, round_up(job.range.end - begin, warp_positions));
            if (job.out.maxima != nullptr) {
                arguments.out.maxima = job.out.maxima + (begin - job.range.begin) / maxima_group;
            }
            if (arguments.slots > 1) {
                launch_kind<4>(context, kind, arguments, stream);
            } else {
                launch_kind<1>(context, kind, arguments, stream);
            }
        }
        slot += arguments.slots;
    }
}

}  // namespace pgwarp::cuda
