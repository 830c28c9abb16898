// Scores of small batches: a block for every stretch of the slots of a query. Halves are compared with the query
// in single precision; so are bytes, times their rows' scales; codes by look-up tables in shared memory (Faiss paper,
// section 5.2), one table a query, as the terms of equation 11 leave the lists out of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ivfadc/scan.h"
#include "ivfadc/view.h"

namespace pgwarp::cuda::ivfadc
{

// Floats of the tables of so many queries; 0 where rows are no codes.
std::size_t pair_table_floats(const MirrorView& mirror, std::size_t queries);

// Of `work`: the probes with their groups, most_slots, dead and shared_bytes. `tables` has pair_table_floats().
void scan_pairs(const MirrorView& mirror, const QueryView& queries, std::uint32_t count, const ScanWork& work,
                float* tables, const DenseScores& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::ivfadc
