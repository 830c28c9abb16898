// Scores of queries against rows by matrix tiles. Blocks of 8 warps compute tiles of 64 queries x 128 rows, 64
// dimensions at a time; the tiles of an item stream through a ring in shared memory. The parameter Rows is the form of
// the rows (tile_rows.cuh), Work the pairs of queries and rows, and Output the use of the scores.
//
// A Work has first() and last(), the items of the launch; item(index); pair(at), the at-th pair of a query and a
// stretch of rows; and dead, one bit for each position, or null.
#pragma once

#include <cstdint>

#include "device/shared_memory.h"
#include "rows/matrix_tile.cuh"
#include "rows/scores.h"
#include "rows/tile_rows.cuh"
#include "rows/view.h"
#include "select/order_bits.h"

namespace pgwarp::cuda::rows
{

inline constexpr int scan_threads = 256;
inline constexpr int scan_tile_rows = 128;
inline constexpr std::uint32_t query_tile_bytes = scan_queries * tile_depth * 2;
inline constexpr std::uint32_t row_tile_bytes = scan_tile_rows * tile_depth * 2;
inline constexpr std::uint32_t term_bytes = scan_tile_rows * sizeof(float);
inline constexpr std::uint32_t stage_bytes = query_tile_bytes + row_tile_bytes + term_bytes;

// Up to scan_queries pairs with the same stretch of rows.
struct TileItem {
    std::uint32_t first_pair;
    std::uint32_t pairs;           // 1 .. scan_queries
    std::uint32_t first_position;  // a multiple of 32
    std::uint32_t first_slot;      // relative to the pair's slot
    std::uint32_t rows;            // a multiple of 32
};

struct TilePair {
    std::uint32_t query;
    std::uint32_t slot;
    float constant;  // added to the scores
};

// The data of an item's queries, by their place in the item.
struct ItemQueries {
    std::uint32_t query[scan_queries];
    std::uint32_t slot[scan_queries];
    float multiplier[scan_queries];
    float constant[scan_queries];
    float limit[scan_queries];
};

// Scores within their limits. A block collects those of an item, so that each query's count is raised once an item.
struct PassedScores {
    static constexpr std::uint32_t capacity = 1024;
    std::uint32_t count;
    std::uint32_t of_query[scan_queries];
    std::uint32_t begin[scan_queries];
    std::uint32_t places[capacity];  // place of the query in the item; flush() adds the rank among the query's entries
    std::uint64_t entries[capacity];
};

inline constexpr std::uint32_t passed_bytes = (sizeof(PassedScores) + 127) / 128 * 128;

struct DenseOutput {
    static constexpr bool limited = false;
    DenseScores out;
    __device__ float limit_of(std::uint32_t) const { return 0; }
    __device__ void write(const ItemQueries& queries, int at, std::uint32_t slot_after, float first, float second) const
    {
        float* to = out.scores + queries.query[at] * out.stride + queries.slot[at] + slot_after;
        *reinterpret_cast<float2*>(to) = {first, second};
    }
    __device__ void write_minimum(const ItemQueries& queries, int at, std::uint32_t slot_after, std::uint32_t key) const
    {
        const std::size_t slot = queries.query[at] * out.stride + queries.slot[at] + slot_after;
        out.minima[slot / group_rows] = key;
    }
};

struct LimitedOutput {
    static constexpr bool limited = true;
    LimitedScores out;
    // A query over its capacity is lost already, so none of its scores pass any more.
    __device__ float limit_of(std::uint32_t query) const
    {
        return __ldcg(out.counts + query) > out.capacity ? -INFINITY : out.limits[query];
    }
    __device__ void write(std::uint32_t query, std::uint32_t at, std::uint64_t entry) const
    {
        if (at < out.capacity) out.candidates[static_cast<std::size_t>(query) * out.capacity + at] = entry;
    }
    __device__ void keep(const ItemQueries& queries, std::uint32_t slot, int at, float score, std::uint32_t position,
                         PassedScores& passed) const
    {
        const std::uint64_t entry = static_cast<std::uint64_t>(score_key(score)) << 32 | position;
        if (slot < PassedScores::capacity) {
            passed.places[slot] = static_cast<std::uint32_t>(at);
            passed.entries[slot] = entry;
        } else {
            write(queries.query[at], atomicAdd(out.counts + queries.query[at], 1U), entry);
        }
    }
    // Called by all threads when the scores of the item are complete.
    __device__ void flush(const ItemQueries& queries, PassedScores& passed) const
    {
        __syncthreads();
        const std::uint32_t count = min(passed.count, PassedScores::capacity);
        if (count == 0) return;
        for (std::uint32_t i = threadIdx.x; i < count; i += scan_threads) {
            const std::uint32_t at = passed.places[i];
            passed.places[i] = at | atomicAdd(&passed.of_query[at], 1U) << 8;
        }
        __syncthreads();
        if (threadIdx.x < scan_queries && passed.of_query[threadIdx.x] > 0) {
            passed.begin[threadIdx.x] =
                atomicAdd(out.counts + queries.query[threadIdx.x], passed.of_query[threadIdx.x]);
        }
        __syncthreads();
        for (std::uint32_t i = threadIdx.x; i < count; i += scan_threads) {
            const std::uint32_t at = passed.places[i] & 255U;
            write(queries.query[at], passed.begin[at] + (passed.places[i] >> 8), passed.entries[i]);
        }
    }
};

template <class Work, class Output>
__device__ void load_item_queries(ItemQueries& to, const TileItem& item, const Work& work, const QueryView& queries,
                                  const Output& output)
{
    if (threadIdx.x >= scan_queries) return;
    const std::uint32_t i = threadIdx.x;
    const TilePair pair = work.pair(item.first_pair + min(i, item.pairs - 1));
    to.query[i] = pair.query;
    to.slot[i] = pair.slot;
    to.constant[i] = pair.constant;
    to.multiplier[i] = queries.multipliers[pair.query];
    to.limit[i] = output.limit_of(pair.query);
}

__device__ inline void load_query_tile(unsigned char* tile, const ItemQueries& item_queries, std::uint32_t count,
                                       const QueryView& queries, std::uint32_t stride, std::uint32_t depth)
{
    for (std::uint32_t i = threadIdx.x; i < scan_queries * tile_pieces; i += scan_threads) {
        const std::uint32_t row = i / tile_pieces;
        const std::uint32_t piece = i % tile_pieces;
        const std::uint32_t at = depth + piece * 8;
        const bool present = row < count && at < stride;
        const __half* from =
            queries.halves + (present ? static_cast<std::size_t>(item_queries.query[row]) * stride + at : 0);
        copy_piece(tile + tile_offset(row, piece), from, present);
    }
}

// Loads the terms of a tile's rows, which are used when the last depth is multiplied.
__device__ inline void load_terms(unsigned char* to, const float* terms, std::uint32_t rows)
{
    if (threadIdx.x >= scan_tile_rows / 4) return;
    const bool present = threadIdx.x * 4 < rows;
    copy_piece(to + threadIdx.x * 16, terms + (present ? threadIdx.x * 4 : 0), present);
}

// A warp's part of a tile product: 32 queries x 32 rows.
template <class Rows>
__device__ void multiply_tiles(const unsigned char* query_tile, const unsigned char* row_tile, int warp_query,
                               int warp_row, float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
    const std::uint32_t query_base = shared_address(query_tile);
    const std::uint32_t row_base = shared_address(row_tile);
#pragma unroll
    for (int step = 0; step < tile_depth / 16; ++step) {
        std::uint32_t a[2][4];
        std::uint32_t b[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            load_matrices(a[i], query_base + tile_offset(warp_query + i * 16 + (lane & 15), step * 2 + (lane >> 4)));
        }
        Rows::fragments(row_base, warp_row, step, b);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply(sums[i][j], a[i], b[j / 2][(j % 2) * 2], b[j / 2][(j % 2) * 2 + 1]);
        }
    }
}

// Writes the least score of each query among a warp's 32 rows, which are one group. All lanes must call.
__device__ inline void emit_minima(const TileItem& item, const ItemQueries& queries, std::uint32_t row, int warp_query,
                                   const DenseOutput& output, const float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            std::uint32_t key = no_key;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                key = min(key, min(score_key(sums[i][j][h * 2]), score_key(sums[i][j][h * 2 + 1])));
            }
            key = min(key, __shfl_xor_sync(0xffffffffU, key, 1));
            key = min(key, __shfl_xor_sync(0xffffffffU, key, 2));
            const int at = warp_query + i * 16 + h * 8 + lane / 4;
            if (lane % 4 == 0 && at < static_cast<int>(item.pairs)) {
                output.write_minimum(queries, at, item.first_slot + row, key);
            }
        }
    }
}

// Passes a warp's scores of one tile to the output and clears the sums. Limits are finite, so infinities and NaN never
// pass (except for queries over their capacity, where all limits are -infinity).
template <class Rows, class Output>
__device__ void emit_tile(const Rows& rows, const TileItem& item, const ItemQueries& queries, std::uint32_t tile_row,
                          int warp_query, int warp_row, const float* tile_terms, const std::uint32_t* dead,
                          const Output& output, PassedScores* passed, float (&sums)[2][4][4])
{
    const int lane = threadIdx.x % 32;
    std::uint32_t within = 0;  // one bit for each of the 32 scores of this thread
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const std::uint32_t row = tile_row + warp_row + j * 8 + (lane % 4) * 2;
        const bool present = row < item.rows;
        const std::uint32_t position = item.first_position + row;
        float2 term{0, 0};
        float2 scale{1, 1};
        if (present) {
            if constexpr (Rows::scaled) scale = rows.scales_of(position);
            term = *reinterpret_cast<const float2*>(tile_terms + row - tile_row);
            if (dead != nullptr) {
                const std::uint32_t bits = dead[position / 32] >> (position % 32);
                if ((bits & 1U) != 0) term.x = INFINITY;
                if ((bits & 2U) != 0) term.y = INFINITY;
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int at = warp_query + i * 16 + h * 8 + lane / 4;
                const float multiplier = queries.multiplier[at];
                const float constant = queries.constant[at];
                float& first = sums[i][j][h * 2];
                float& second = sums[i][j][h * 2 + 1];
                first = fmaf(Rows::scaled ? -multiplier * scale.x : -multiplier, first, term.x) + constant;
                second = fmaf(Rows::scaled ? -multiplier * scale.y : -multiplier, second, term.y) + constant;
                if (!present || at >= static_cast<int>(item.pairs)) continue;
                if constexpr (Output::limited) {
                    const float limit = queries.limit[at];
                    const int bit = i * 16 + j * 4 + h * 2;
                    within |= (first <= limit ? 1U : 0U) << bit | (second <= limit ? 2U : 0U) << bit;
                } else {
                    output.write(queries, at, item.first_slot + row, first, second);
                }
            }
        }
    }
    if constexpr (!Output::limited) {
        const std::uint32_t row = tile_row + warp_row;
        if (output.out.minima != nullptr && row < item.rows) {
            emit_minima(item, queries, row, warp_query, output, sums);
        }
    } else {
        if (within != 0) {
            std::uint32_t slot = atomicAdd(&passed->count, static_cast<std::uint32_t>(__popc(within)));
#pragma unroll
            for (int bit = 0; bit < 32; ++bit) {
                if ((within >> bit & 1U) == 0) continue;
                const int i = bit / 16;
                const int j = bit / 4 % 4;
                const int h = bit / 2 % 2;
                const std::uint32_t row = tile_row + warp_row + j * 8 + (lane % 4) * 2 + bit % 2;
                output.keep(queries, slot++, warp_query + i * 16 + h * 8 + lane / 4, sums[i][j][h * 2 + bit % 2],
                            item.first_position + row, *passed);
            }
        }
    }
#pragma unroll
    for (auto& group : sums) {
#pragma unroll
        for (auto& tile : group) {
#pragma unroll
            for (float& sum : tile) sum = 0;
        }
    }
}

template <class Rows, int Stages, class Work, class Output>
__global__ __launch_bounds__(scan_threads, 2) void scan_tiles(Rows rows, QueryView queries, std::uint32_t stride,
                                                              const float* terms, Work work, Output output)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ ItemQueries item_queries;
    const std::uint32_t begin = work.first() + blockIdx.x;
    const std::uint32_t last = work.last();
    if (begin >= last) return;
    constexpr int stages = Stages;
    PassedScores* passed = nullptr;
    unsigned char* rest = shared + stages * stage_bytes;
    if constexpr (Output::limited) {
        passed = reinterpret_cast<PassedScores*>(rest);
        rest += passed_bytes;
    }
    rows.prepare(rest);
    const int warp = threadIdx.x / 32;
    const int warp_query = (warp % 2) * 32;
    const int warp_row = (warp / 2) * 32;
    const std::uint32_t depths = (stride + tile_depth - 1) / tile_depth;
    for (std::uint32_t index = begin; index < last; index += gridDim.x) {
        const TileItem item = work.item(index);
        // All threads have finished the item before.
        __syncthreads();
        load_item_queries(item_queries, item, work, queries, output);
        if (Output::limited && threadIdx.x < scan_queries) {
            passed->of_query[threadIdx.x] = 0;
            if (threadIdx.x == 0) passed->count = 0;
        }
        __syncthreads();
        const std::uint32_t steps = (item.rows + scan_tile_rows - 1) / scan_tile_rows * depths;
        const auto load = [&](std::uint32_t step) {
            if (step < steps) {
                unsigned char* stage = shared + step % stages * stage_bytes;
                const std::uint32_t tile_row = step / depths * scan_tile_rows;
                const std::uint32_t depth = step % depths * tile_depth;
                load_query_tile(stage, item_queries, item.pairs, queries, stride, depth);
                if (step % depths == depths - 1) {
                    load_terms(stage + query_tile_bytes + row_tile_bytes, terms + item.first_position + tile_row,
                               item.rows - tile_row);
                }
                rows.template load<scan_tile_rows, scan_threads>(
                    stage + query_tile_bytes, item.first_position + tile_row, item.rows - tile_row, depth);
            }
            commit_copies();
        };
        float sums[2][4][4] = {};
        for (int step = 0; step < stages - 1; ++step) load(step);
        for (std::uint32_t step = 0; step < steps; ++step) {
            wait_for_copies<stages - 2>();
            __syncthreads();
            load(step + stages - 1);
            const unsigned char* stage = shared + step % stages * stage_bytes;
            multiply_tiles<Rows>(stage, stage + query_tile_bytes, warp_query, warp_row, sums);
            if (step % depths == depths - 1) {
                const auto* tile_terms = reinterpret_cast<const float*>(stage + query_tile_bytes + row_tile_bytes);
                emit_tile(rows, item, item_queries, step / depths * scan_tile_rows, warp_query, warp_row, tile_terms,
                          work.dead, output, passed, sums);
            }
        }
        if constexpr (Output::limited) output.flush(item_queries, *passed);
    }
}

// Shared memory of a block beside the ring, and the part of the device's limit that static variables take.
template <class Output>
constexpr std::uint32_t beside_ring = Output::limited ? passed_bytes : 0;
inline constexpr std::uint32_t fixed_bytes = 2048;
inline constexpr int fewest_stages = 2;  // fits the shared memory of every device

// Calls launch(kernel, bytes of shared memory) with the kernel whose ring fits. shared_bytes: the most shared memory of
// a block, of which `Rows` takes extra_bytes.
template <class Rows, class Work, class Output, class Launch>
void with_tile_kernel(std::uint32_t extra_bytes, std::uint32_t shared_bytes, const Launch& launch)
{
    const std::uint32_t beside = beside_ring<Output> + extra_bytes;
    const std::uint32_t bytes = Rows::stages * stage_bytes + beside;
    if constexpr (Rows::stages > fewest_stages) {
        if (bytes + fixed_bytes > shared_bytes) {
            const auto fewer = scan_tiles<Rows, fewest_stages, Work, Output>;
            allow_shared_memory(fewer);
            return launch(fewer, fewest_stages * stage_bytes + beside);
        }
    }
    const auto kernel = scan_tiles<Rows, Rows::stages, Work, Output>;
    allow_shared_memory(kernel);
    launch(kernel, bytes);
}

}  // namespace pgwarp::cuda::rows
