// Match counts of rows that have one small value for each of a number of functions, such as signatures of LSH: the
// count of a row is the number of functions for which it has the query's value. Without posting lists: for each value
// of a function a block makes a bitmap of its rows, and a thread adds the bitmaps that its query names, 32 rows in a
// word, with bit-sliced counters in registers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "matchcount/match_count.h"

namespace pgwarp::cuda::matchcount
{

inline constexpr std::uint32_t most_dense_functions = 1024;
inline constexpr std::uint32_t most_dense_values = 256;

// Rows in device memory, by function. A value of at least `universe` matches none.
struct DenseRows {
    std::uint32_t rows = 0;
    std::uint32_t functions = 0;           // 1 to most_dense_functions
    std::uint32_t universe = 0;            // values of a function: 1 to most_dense_values
    std::size_t stride = 0;                // from function to function: a multiple of 16, at least `rows`
    const std::uint8_t* values = nullptr;  // [functions][stride]; 16-byte aligned
};

// Returns the least stride for a number of rows.
constexpr std::size_t dense_stride(std::uint32_t rows)
{
    return (std::size_t{rows} + 127) / 128 * 128;
}

// Writes signatures [rows][functions] by function: values[f * stride + first + i] for row i. All device memory.
void transpose_signatures(const std::uint8_t* signatures, std::uint32_t rows, std::uint32_t functions,
                          std::uint8_t* values, std::size_t stride, std::uint32_t first, cudaStream_t stream);

struct DenseQueries {
    std::uint32_t count = 0;
    const std::uint8_t* values = nullptr;  // [count][functions]; device
    const std::uint32_t* dead = nullptr;   // bit i: row i is left out; null: none; device
};

std::size_t top_dense_counts_workspace_bytes(const DenseRows& rows, std::uint32_t queries, std::uint32_t k,
                                             const Context& context);

// The k rows of largest count of each query, by count, descending, ties by row; rows of count 0 follow in row order.
// k >= 1. Asynchronous. Throws CudaError, std::invalid_argument outside the contract.
void top_dense_counts(const DenseRows& rows, const DenseQueries& queries, std::uint32_t k, const CountedRows& out,
                      std::byte* workspace, Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
