// k-selection: the k smallest of every row of a matrix in device memory, for any k and any row length.
//
// Contract. Row i is `columns` floats at values + i * stride. The result, row-major [rows][k], holds for every row the
// k smallest (value, column) in ascending order. Ties go to the smaller column, or to the smaller id where ids are
// given (for merging partial results). NaN and +infinity are never selected; -0 is returned as +0. Where a row has
// fewer than k candidates, the rest is +infinity with id 0xffffffff. The result depends only on the input, not on the
// device or the run.
//
// Source: register queues from "Billion-scale similarity search with GPUs" (Johnson, Douze, Jégou), section 4, for
// short rows. Longer rows take one pass with a threshold that is an order statistic of a sample, then radix selection
// and a bitonic sort of the few keys that pass. A misleading sample costs time, never the answer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda
{

struct SelectShape {
    std::int64_t rows;
    std::int64_t columns;  // at most 2^31
    std::int64_t stride;   // elements from row to row, >= columns
    std::int64_t k;        // >= 1; may exceed columns
};

// The method for a shape. `automatic` chooses by the shape; benchmarks and tests can force a method.
enum class SelectMethod { automatic, warp, block, grid };

// Bytes of device memory that select_smallest needs beside its operands, for a shape on the current device. Throws
// std::invalid_argument for a shape outside the contract.
std::size_t select_workspace_bytes(const SelectShape& shape, SelectMethod method = SelectMethod::automatic);

// Asynchronous, in the order of `stream`. Allocates nothing. workspace: 256-byte aligned, at least
// select_workspace_bytes; free again when the work is done. Throws std::invalid_argument for a shape outside the
// contract, CudaError for a failed launch.
void select_smallest(const float* values, const SelectShape& shape, float* selected_values,
                     std::uint32_t* selected_columns, void* workspace, cudaStream_t stream,
                     SelectMethod method = SelectMethod::automatic);

// Selects with an id for every value (same shape and stride as values) in place of its column.
void select_smallest_with_ids(const float* values, const std::uint32_t* ids, const SelectShape& shape,
                              float* selected_values, std::uint32_t* selected_ids, void* workspace, cudaStream_t stream,
                              SelectMethod method = SelectMethod::automatic);

}  // namespace pgwarp::cuda
