// Scores of small batches: a block for each stretch of the slots of a query. Halves are compared with the query in
// single precision, bytes too, times their rows' scales. Codes are compared by look-up tables in shared memory (Faiss
// paper, section 5.2), one table for each query, as the table of equation 11 does not depend on the list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/scan.h"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// The floats of the tables of `queries` queries; 0 where rows are not scanned as codes.
std::size_t pair_table_floats(const MirrorView& mirror, std::size_t queries);

// Uses of `work` the probes with their groups, most_slots, dead and shared_bytes. tables: pair_table_floats().
// Asynchronous. Throws CudaError.
void scan_pairs(const MirrorView& mirror, const QueryView& queries, std::uint32_t count, const ScanWork& work,
                float* tables, const DenseScores& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
