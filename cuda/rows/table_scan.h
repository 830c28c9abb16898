// Scores of queries against all rows of a small table of halves.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "rows/scores.h"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// Writes scores[query * stride + row] of all rows, smaller is nearer; infinite for padding. `queries` [count] are
// prepared for the space of the table, in vectors of row_stride halves. shared_bytes: the most shared memory of a
// block, 64 KB or more. Throws CudaError.
void scan_table(const HalfTable& table, std::uint32_t row_stride, const QueryView& queries, std::uint32_t count,
                const DenseScores& out, std::uint32_t shared_bytes, cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
