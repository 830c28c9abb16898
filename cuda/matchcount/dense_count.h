// Match counts of rows that have one small value for each of a number of functions, such as signatures of LSH: the
// count of a row is the number of functions for which it has the query's value. Without posting lists: for each value
// of a function a block makes a bitmap of its rows, and a thread adds the bitmaps that its query names, 32 rows in a
// word, with bit-sliced counters in registers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/context.h"
#include "matchcount/counted_rows.h"
#include "matchcount/dense_rows.h"

namespace pgwarp::cuda::matchcount
{

// Writes signatures [rows][functions] by function: values[f * stride + first + i] for row i. All device memory.
void transpose_signatures(const std::uint8_t* signatures, std::uint32_t rows, std::uint32_t functions,
                          std::uint8_t* values, std::size_t stride, std::uint32_t first, cudaStream_t stream);

std::size_t top_dense_counts_workspace_bytes(const DenseRows& rows, std::uint32_t queries, std::uint32_t k,
                                             const Context& context);

// The k rows of largest count of each query, by count, descending, ties by row; rows of count 0 follow in row order.
// k >= 1. Asynchronous. Throws CudaError, std::invalid_argument outside the contract.
void top_dense_counts(const DenseRows& rows, const DenseQueries& queries, std::uint32_t k, const CountedRows& out,
                      std::byte* workspace, Context& context, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
