// Exact k-NN over resident rows, with operands and answer on the device. A batch is one dispatch.
//
// A sample of the positions gives each query a first threshold. Ranges of positions, each several times as long as the
// last, are filtered by the threshold and tighten it. The rows that pass are ranked by canonical distance, and the
// error bound of the scores proves that no other row belongs to the answer (distance/score_bound.h). A query whose
// proof fails is filtered once more with the threshold that its proof needs. If that fails too (more rows too close to
// tell apart than a slot has entries), the query goes to passes/tied_search.h, and queries whose scores may overflow
// are scanned.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "passes/dead_rows.h"
#include "passes/passes.h"
#include "passes/scan.h"

namespace pgwarp::cuda
{

// Counts of queries by the way that answered them.
struct ExactStatistics {
    std::uint64_t queries = 0;
    std::uint64_t filtered_again = 0;
    std::uint64_t tied = 0;  // among more close rows than a slot has entries
    std::uint64_t scanned = 0;
};

// Chooses the kind of scores for the metric. Waits for the stream. Throws std::bad_alloc, CudaError.
ExactRows make_exact_rows(MemoryPool& pool, Metric metric, const float* vectors, std::uint32_t rows,
                          std::uint32_t dimensions, cudaStream_t stream);

// queries: [count][dimensions], cosine queries normalised. Any k. answer.found must have room for `count` queries,
// values and rows for [count][answer.k]. Waits for the stream once a pass to read the number of unproven queries; the
// last answers may still be under way on return. Checks `cancel` between launches. Throws std::bad_alloc, CudaError,
// and the exception of `cancel`.
void search_exactly(Context& context, const ExactRows& rows, const float* queries, std::uint32_t count,
                    const DeadRows& dead, const ExactAnswer& answer, ExactStatistics& statistics,
                    const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
