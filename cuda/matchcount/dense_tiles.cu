// A block goes through the chunks of functions of its tiles. While it counts one chunk it makes the bitmaps of the next
// and empties the place of the last, so that a barrier a chunk is enough.
#include "matchcount/dense_tiles.h"

#include <algorithm>
#include <type_traits>

#include "device/error.h"
#include "device/shared_memory.h"
#include "matchcount/bit_counter.cuh"
#include "matchcount/count_score.h"

namespace pgwarp::cuda::matchcount
{

namespace
{

constexpr int threads = tile_queries;
constexpr int words = tile_rows / 32;
static_assert(tile_rows * chunk_functions == threads, "a thread reads one value of a chunk");
constexpr std::uint32_t bitmap_bytes = tile_rows / 8;
static_assert(chunk_functions * (most_dense_values + 1) * bitmap_bytes <= 65536, "codes have 16 bits");

// Bitmaps of a chunk: [chunk_functions][universe + 1]. The last of a function is empty.
__host__ __device__ constexpr std::uint32_t bitmaps_of_chunk(std::uint32_t universe)
{
    return chunk_functions * (universe + 1);
}

constexpr std::uint32_t chunks_in_memory = 3;

std::size_t shared_bytes(const DenseRows& rows)
{
    return std::size_t{chunks_in_memory} * bitmaps_of_chunk(rows.universe) * bitmap_bytes;
}

__global__ void codes_kernel(DenseRows rows, DenseQueries queries, DenseCodes codes)
{
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t pair = blockIdx.y;
    if (query >= codes.padded) return;
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
        const std::uint32_t f = pair * 2 + i;
        std::uint32_t value = rows.universe;
        if (query < queries.count && f < rows.functions)
            value = min(value, std::uint32_t{queries.values[std::size_t{query} * rows.functions + f]});
        word |= (f % chunk_functions * (rows.universe + 1) + value) * bitmap_bytes << i * 16;
    }
    constexpr std::uint32_t pairs = chunk_functions / 2;
    reinterpret_cast<std::uint32_t*>(codes.words + std::size_t{pair / pairs} * codes.padded + query)[pair % pairs] =
        word;
}

// The tiles of a launch: first, first + grid, ... below end.
struct TileRange {
    std::uint32_t first;
    std::uint32_t end;
    std::uint32_t step;  // from row to row
};

constexpr std::uint32_t no_row = 0xffffffffU;

// The thread's row of a tile; no_row where it is none, or dead.
__device__ std::uint32_t own_row(const DenseRows& rows, const std::uint32_t* dead, const TileRange& tiles,
                                 std::uint32_t tile)
{
    const std::uint64_t row = std::uint64_t{tile * tile_rows + threadIdx.x % tile_rows} * tiles.step;
    if (tile >= tiles.end || row >= rows.rows) return no_row;
    return dead != nullptr && (dead[row / 32] >> row % 32 & 1) != 0 ? no_row : static_cast<std::uint32_t>(row);
}

// The row's value of the thread's function in a chunk; the universe where there is none.
__device__ std::uint32_t own_value(const DenseRows& rows, std::uint32_t row, std::uint32_t chunk)
{
    const std::uint32_t f = chunk * chunk_functions + threadIdx.x / tile_rows;
    return row == no_row || f >= rows.functions ? rows.universe : rows.values[f * rows.stride + row];
}

extern __shared__ uint4 bitmaps[];

// Adds the row's value to the bitmaps of a chunk.
__device__ void add_row(uint4* chunk_bitmaps, std::uint32_t universe, std::uint32_t value)
{
    if (value >= universe) return;
    const std::uint32_t row = threadIdx.x % tile_rows;
    const std::uint32_t bitmap = threadIdx.x / tile_rows * (universe + 1) + value;
    atomicOr(reinterpret_cast<std::uint32_t*>(chunk_bitmaps + bitmap) + row / 32, 1U << row % 32);
}

__device__ void empty(uint4* chunk_bitmaps, std::uint32_t universe)
{
    for (std::uint32_t i = threadIdx.x; i < bitmaps_of_chunk(universe); i += threads) chunk_bitmaps[i] = {};
}

__device__ __forceinline__ void load(std::uint32_t address, std::uint32_t (&bits)[words])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(address));
}

// Adds two functions to the lowest plane.
template <int planes>
__device__ __forceinline__ void add_pair(BitCounter<planes, words>& counter, std::uint32_t pair, std::uint32_t address,
                                         std::uint32_t (&carry)[words])
{
    std::uint32_t a[words];
    std::uint32_t b[words];
    load(address + (pair & 0xffffU), a);
    load(address + (pair >> 16), b);
    counter.add(0, a, b, carry);
}

// Adds four functions; returns carries of weight 4.
template <int planes>
__device__ __forceinline__ void add_four(BitCounter<planes, words>& counter, std::uint32_t first_pair,
                                         std::uint32_t second_pair, std::uint32_t address,
                                         std::uint32_t (&fours)[words])
{
    std::uint32_t low[words];
    std::uint32_t high[words];
    add_pair(counter, first_pair, address, low);
    add_pair(counter, second_pair, address, high);
    counter.add(1, low, high, fours);
}

// Adds a chunk, whose bitmaps are at `address`.
template <int planes>
__device__ __forceinline__ void add_chunk(BitCounter<planes, words>& counter, const uint4& pairs, std::uint32_t address)
{
    std::uint32_t low[words];
    std::uint32_t high[words];
    std::uint32_t eights[words];
    add_four(counter, pairs.x, pairs.y, address, low);
    add_four(counter, pairs.z, pairs.w, address, high);
    counter.add(2, low, high, eights);
    counter.ripple(3, eights);
}

template <int planes>
__device__ void write_sample(const BitCounter<planes, words>& counter, const DenseSample& sample, std::uint32_t padded,
                             std::uint32_t tile, std::uint32_t query)
{
#pragma unroll
    for (int p = 0; p < planes; ++p)
#pragma unroll
        for (int w = 0; w < words; ++w)
            sample.planes[((std::size_t{tile} * planes + p) * words + w) * padded + query] = counter.plane[p][w];
}

template <int planes>
__device__ void pass_rows(const BitCounter<planes, words>& counter, const DensePassed& passed, std::uint32_t tile,
                          std::uint32_t query)
{
    std::uint32_t reached[words];
    counter.at_least(passed.thresholds[query], reached);
    std::uint32_t all = 0;
#pragma unroll
    for (int w = 0; w < words; ++w) all += __popc(reached[w]);
    if (all == 0) return;
    std::uint32_t slot = atomicAdd(passed.passed + query, all);
#pragma unroll
    for (int w = 0; w < words; ++w) {
        for (; reached[w] != 0; reached[w] &= reached[w] - 1, ++slot) {
            if (slot >= passed.places) return;
            const int bit = __ffs(static_cast<int>(reached[w])) - 1;
            std::uint32_t count = 0;
#pragma unroll
            for (int p = 0; p < planes; ++p) count |= (counter.plane[p][w] >> bit & 1) << p;
            const std::size_t place = std::size_t{query} * passed.places + slot;
            passed.scores[place] = score_of_count(count);
            passed.rows[place] = tile * tile_rows + w * 32 + static_cast<std::uint32_t>(bit);
        }
    }
}

// The block counts the queries of group blockIdx.y. Out is DenseSample or DensePassed.
template <int planes, class Out>
__global__ __launch_bounds__(threads, 1) void tiles_kernel(DenseRows rows, const std::uint32_t* dead, DenseCodes codes,
                                                           TileRange tiles, Out out)
{
    const std::uint32_t in_chunk = bitmaps_of_chunk(rows.universe);
    const std::uint32_t chunks = (rows.functions + chunk_functions - 1) / chunk_functions;
    const std::uint32_t query = blockIdx.y * tile_queries + threadIdx.x;
    const bool counts = query / 32 * 32 < codes.queries;  // warps without a query make bitmaps only
    uint4* present = bitmaps;                             // the chunk that is counted
    uint4* next = bitmaps + in_chunk;
    uint4* last = bitmaps + 2 * in_chunk;
    std::uint32_t row = own_row(rows, dead, tiles, tiles.first + blockIdx.x);
    empty(present, rows.universe);
    empty(next, rows.universe);
    __syncthreads();
    add_row(present, rows.universe, own_value(rows, row, 0));
    for (std::uint32_t tile = tiles.first + blockIdx.x; tile < tiles.end; tile += gridDim.x) {
        BitCounter<planes, words> counter;
        counter.clear();
        const uint4* codes_of_query = codes.words + query;
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            const bool ends = chunk + 1 == chunks;
            if (ends) row = own_row(rows, dead, tiles, tile + gridDim.x);
            const std::uint32_t value = own_value(rows, row, ends ? 0 : chunk + 1);
            const uint4 pairs = __ldg(codes_of_query);
            codes_of_query += codes.padded;
            __syncthreads();
            empty(last, rows.universe);
            if (counts) add_chunk(counter, pairs, static_cast<std::uint32_t>(__cvta_generic_to_shared(present)));
            add_row(next, rows.universe, value);
            uint4* const counted = present;
            present = next;
            next = last;
            last = counted;
        }
        if constexpr (std::is_same_v<Out, DenseSample>)
            write_sample(counter, out, codes.padded, tile, query);
        else if (query < codes.queries)
            pass_rows(counter, out, tile, query);
    }
}

template <class Out>
void launch_tiles(const DenseRows& rows, const std::uint32_t* dead, const DenseCodes& codes, std::uint32_t tiles,
                  std::uint32_t step, const Out& out, Context& context, cudaStream_t stream)
{
    const auto kernel = counter_planes(rows.functions) == 8 ? tiles_kernel<8, Out> : tiles_kernel<11, Out>;
    allow_shared_memory(kernel);
    const std::uint32_t groups = codes.padded / tile_queries;
    const auto blocks = static_cast<std::uint32_t>(context.multiprocessors());
    // A launch runs for about a millisecond.
    const std::uint32_t at_a_time = blocks * std::max(1U, 1024 / function_chunks(rows.functions) / groups);
    for (std::uint32_t first = 0; first < tiles; first += at_a_time) {
        const TileRange range{first, std::min(tiles, first + at_a_time), step};
        kernel<<<dim3(std::min(blocks, range.end - first), groups), threads, shared_bytes(rows), stream>>>(
            rows, dead, codes, range, out);
        check_launch("dense match counts");
    }
}

}  // namespace

bool tiles_fit(const DenseRows& rows, const Context& context)
{
    return shared_bytes(rows) <= context.shared_bytes_per_block();
}

void write_dense_codes(const DenseRows& rows, const DenseQueries& queries, const DenseCodes& codes, cudaStream_t stream)
{
    codes_kernel<<<dim3((codes.padded + 255) / 256, function_chunks(rows.functions) * chunk_functions / 2), 256, 0,
                   stream>>>(rows, queries, codes);
    check_launch("codes of queries");
}

void count_sample(const DenseRows& rows, const std::uint32_t* dead, const DenseCodes& codes, const DenseSample& sample,
                  Context& context, cudaStream_t stream)
{
    launch_tiles(rows, dead, codes, sample.tiles, sample.step, sample, context, stream);
}

void count_tiles(const DenseRows& rows, const std::uint32_t* dead, const DenseCodes& codes, const DensePassed& passed,
                 Context& context, cudaStream_t stream)
{
    launch_tiles(rows, dead, codes, (rows.rows + tile_rows - 1) / tile_rows, 1, passed, context, stream);
}

}  // namespace pgwarp::cuda::matchcount
