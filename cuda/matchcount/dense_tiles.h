// The kernel that counts tiles of 128 rows for 1,024 queries at a time, a query a thread.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "matchcount/dense_rows.h"

namespace pgwarp::cuda::matchcount
{

inline constexpr std::uint32_t tile_rows = 128;
inline constexpr std::uint32_t tile_queries = 1024;
inline constexpr std::uint32_t chunk_functions = 8;  // whose bitmaps are made at a time, and whose codes are a vector

// Bits of the counters: 8 where there are fewer than 2^8 functions.
constexpr std::uint32_t counter_planes(std::uint32_t functions)
{
    return functions < 256 ? 8 : 11;
}

// Whether the bitmaps of a chunk fit into the device's shared memory.
bool tiles_fit(const DenseRows& rows, const Context& context);

// The queries' values as places of bitmaps in bytes, in 16 bits for each function.
struct DenseCodes {
    std::uint32_t queries = 0;
    std::uint32_t padded = 0;  // a multiple of tile_queries
    uint4* words = nullptr;    // [chunks][padded]
};

constexpr std::uint32_t function_chunks(std::uint32_t functions)
{
    return (functions + chunk_functions - 1) / chunk_functions;
}

void write_dense_codes(const DenseRows& rows, const DenseQueries& queries, const DenseCodes& codes,
                       cudaStream_t stream);

// Every step-th row, by number, is in tiles; a tile's counters go to planes[tile][plane][word][padded].
struct DenseSample {
    std::uint32_t tiles = 0;
    std::uint32_t step = 0;
    std::uint32_t* planes = nullptr;
};

void count_sample(const DenseRows& rows, const std::uint32_t* dead, const DenseCodes& codes, const DenseSample& sample,
                  Context& context, cudaStream_t stream);

// Where rows of large counts go: all whose counts reach thresholds[query] >= 1, in any order. passed[query] is their
// number, even beyond `places`.
struct DensePassed {
    std::uint32_t places = 0;
    const std::uint32_t* thresholds = nullptr;  // [padded]
    std::uint32_t* passed = nullptr;            // [queries], 0 at first
    float* scores = nullptr;                    // [queries][places]; score_of_count
    std::uint32_t* rows = nullptr;              // [queries][places]
};

void count_tiles(const DenseRows& rows, const std::uint32_t* dead, const DenseCodes& codes, const DensePassed& passed,
                 Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
