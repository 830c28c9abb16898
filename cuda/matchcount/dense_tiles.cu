// A block goes through chunks of functions of its tiles. Each of its warps makes a part of the next chunk's bitmaps and
// counts the present chunk, so that the two overlap.
#include "matchcount/dense_tiles.h"

#include <algorithm>

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

// Bitmaps of a chunk: [chunk_functions][universe + 1] of tile_rows bits. The last of a function is empty.
std::size_t bitmaps_of_chunk(const DenseRows& rows)
{
    return std::size_t{chunk_functions} * (rows.universe + 1);
}

// Two chunks with their copies, and one that is being made.
std::size_t shared_bytes(const DenseRows& rows, std::uint32_t copy_bits)
{
    return bitmaps_of_chunk(rows) * (tile_rows / 8) * ((2U << copy_bits) + 1);
}

__global__ void codes_kernel(DenseRows rows, DenseQueries queries, DenseCodes codes)
{
    const std::uint32_t query = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t pair = blockIdx.y;
    if (query >= codes.padded) return;
    const std::uint32_t bytes = tile_rows / 8;
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
        const std::uint32_t f = pair * 2 + i;
        std::uint32_t value = rows.universe;
        if (query < queries.count && f < rows.functions)
            value = min(value, std::uint32_t{queries.values[std::size_t{query} * rows.functions + f]});
        const std::uint32_t copy = query & ((1U << codes.copy_bits) - 1);
        word |= ((value << codes.copy_bits) + copy) * bytes << i * 16;
    }
    codes.words[std::size_t{pair} * codes.padded + query] = word;
}

// The tiles of a launch: first, first + grid, ... below end.
struct TileRange {
    std::uint32_t first;
    std::uint32_t end;
    std::uint32_t step;  // from row to row
};

extern __shared__ uint4 bitmaps[];

// The bitmaps of a block in shared memory.
class ChunkBitmaps
{
public:
    __device__ ChunkBitmaps(const DenseRows& rows, const std::uint32_t* dead, std::uint32_t copy_bits)
        : rows_(rows),
          dead_(dead),
          copy_bits_(copy_bits),
          in_function_(rows.universe + 1),
          made_(bitmaps + chunk_functions * (in_function_ << copy_bits) * 2)
    {
        for (std::uint32_t i = threadIdx.x; i < chunk_functions * in_function_; i += threads) made_[i] = {};
    }

    // Returns the thread's value of a chunk: that of function threadIdx.x / tile_rows and row threadIdx.x % tile_rows.
    __device__ std::uint32_t read(std::uint32_t tile, std::uint32_t step, std::uint32_t chunk) const
    {
        const std::uint32_t f = chunk * chunk_functions + threadIdx.x / tile_rows;
        const std::uint64_t row = std::uint64_t{tile * tile_rows + threadIdx.x % tile_rows} * step;
        if (f >= rows_.functions || row >= rows_.rows) return rows_.universe;
        if (dead_ != nullptr && (dead_[row / 32] >> row % 32 & 1) != 0) return rows_.universe;
        return rows_.values[f * rows_.stride + row];
    }

    // Makes the bitmaps of a chunk, once.
    __device__ void make(std::uint32_t value)
    {
        if (value >= rows_.universe) return;
        const std::uint32_t row = threadIdx.x % tile_rows;
        const std::uint32_t bitmap = threadIdx.x / tile_rows * in_function_ + value;
        atomicOr(reinterpret_cast<std::uint32_t*>(made_ + bitmap) + row / 32, 1U << row % 32);
    }

    // Copies them to one of two places, and empties them for the next chunk.
    __device__ void copy_to(std::uint32_t place)
    {
        const std::uint32_t all = chunk_functions * in_function_ << copy_bits_;
        uint4* const to = bitmaps + place * all;
        for (std::uint32_t first = 0; first < all; first += threads) {
            const std::uint32_t i = first + threadIdx.x;
            if (i < all) to[i] = made_[i >> copy_bits_];
            __syncwarp();
            if (i < all && (i & ((1U << copy_bits_) - 1)) == 0) made_[i >> copy_bits_] = {};
        }
    }

    // The address of a place's bitmaps, and the bytes of a function in it.
    __device__ std::uint32_t address(std::uint32_t place) const
    {
        return static_cast<std::uint32_t>(__cvta_generic_to_shared(bitmaps)) + place * chunk_functions * stride();
    }
    __device__ std::uint32_t stride() const { return (in_function_ << copy_bits_) * (tile_rows / 8); }

private:
    const DenseRows& rows_;
    const std::uint32_t* dead_;
    std::uint32_t copy_bits_;
    std::uint32_t in_function_;
    uint4* made_;
};

__device__ __forceinline__ void load(std::uint32_t address, std::uint32_t (&bits)[words])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(address));
}

// The codes of a query for a chunk.
struct ChunkCodes {
    std::uint32_t pairs[chunk_functions / 2];

    __device__ __forceinline__ void read(const DenseCodes& codes, std::uint32_t query, std::uint32_t chunk)
    {
#pragma unroll
        for (std::uint32_t i = 0; i < chunk_functions / 2; ++i)
            pairs[i] = __ldg(codes.words + (chunk * (chunk_functions / 2) + i) * std::size_t{codes.padded} + query);
    }
};

// Adds two functions to the lowest plane.
template <int planes>
__device__ __forceinline__ void add_pair(BitCounter<planes, words>& counter, std::uint32_t pair, std::uint32_t address,
                                         std::uint32_t stride, std::uint32_t (&carry)[words])
{
    std::uint32_t a[words];
    std::uint32_t b[words];
    load(address + (pair & 0xffffU), a);
    load(address + stride + (pair >> 16), b);
    counter.add(0, a, b, carry);
}

// Adds four functions, the first of which has its bitmaps at `address`; returns carries of weight 4.
template <int planes>
__device__ __forceinline__ void add_four(BitCounter<planes, words>& counter, const ChunkCodes& codes, int first_pair,
                                         std::uint32_t address, std::uint32_t stride, std::uint32_t (&fours)[words])
{
    std::uint32_t low[words];
    std::uint32_t high[words];
    add_pair(counter, codes.pairs[first_pair], address, stride, low);
    add_pair(counter, codes.pairs[first_pair + 1], address + 2 * stride, stride, high);
    counter.add(1, low, high, fours);
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
    ChunkBitmaps made(rows, dead, codes.copy_bits);
    const std::uint32_t query = blockIdx.y * tile_queries + threadIdx.x;
    const std::uint32_t chunks = (rows.functions + chunk_functions - 1) / chunk_functions;
    const std::uint32_t stride = made.stride();
    std::uint32_t tile = tiles.first + blockIdx.x;
    std::uint32_t value = made.read(tile, tiles.step, 0);
    __syncthreads();
    made.make(value);
    __syncthreads();
    made.copy_to(0);
    std::uint32_t next_tile = chunks == 1 ? tile + gridDim.x : tile;  // the chunk that is read
    std::uint32_t next_chunk = chunks == 1 ? 0 : 1;
    value = next_tile < tiles.end ? made.read(next_tile, tiles.step, next_chunk) : rows.universe;
    std::uint32_t place = 0;
    for (; tile < tiles.end; tile += gridDim.x) {
        BitCounter<planes, words> counter;
        counter.clear();
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk, place ^= 1) {
            ChunkCodes chunk_codes;
            chunk_codes.read(codes, query, chunk);
            __syncthreads();
            made.make(value);
            next_chunk = next_chunk + 1 == chunks ? 0 : next_chunk + 1;
            if (next_chunk == 0) next_tile += gridDim.x;
            value = next_tile < tiles.end ? made.read(next_tile, tiles.step, next_chunk) : rows.universe;
            const std::uint32_t address = made.address(place);
            std::uint32_t low[words];
            add_four(counter, chunk_codes, 0, address, stride, low);
            __syncthreads();
            made.copy_to(place ^ 1);
            std::uint32_t high[words];
            add_four(counter, chunk_codes, 2, address + 4 * stride, stride, high);
            std::uint32_t eights[words];
            counter.add(2, low, high, eights);
            counter.ripple(3, eights);
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
    const std::uint32_t at_a_time = blocks * std::max(1U, 8192 / padded_functions(rows.functions));
    for (std::uint32_t first = 0; first < tiles; first += at_a_time) {
        const TileRange range{first, std::min(tiles, first + at_a_time), step};
        kernel<<<dim3(std::min(blocks, range.end - first), groups), threads, shared_bytes(rows, codes.copy_bits),
                 stream>>>(rows, dead, codes, range, out);
        check_launch("dense match counts");
    }
}

}  // namespace

std::uint32_t dense_copy_bits(const DenseRows& rows, const Context& context)
{
    std::uint32_t bits = 3;
    while (bits > 0 && shared_bytes(rows, bits) > context.shared_bytes_per_block()) --bits;
    return bits;
}

void write_dense_codes(const DenseRows& rows, const DenseQueries& queries, const DenseCodes& codes, cudaStream_t stream)
{
    codes_kernel<<<dim3((codes.padded + 255) / 256, padded_functions(rows.functions) / 2), 256, 0, stream>>>(
        rows, queries, codes);
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
