// Exact k-NN over resident rows, operands and answer on the device: the batch as one dispatch.
//
// A sample of the positions gives each query a first threshold; ranges of positions, each several times the last, are
// filtered by it and tighten it; what passed is ranked by canonical distance, and the error bound of the scores proves
// that nothing else belongs to the answer (distance/score_bound.h). A query whose proof fails is filtered once more
// with the threshold that its proof asks for; what fails again (more than 4,096 rows too close to tell apart) goes
// through passes/tied_search.h, and what no score can be trusted for is scanned.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "passes/dead_rows.h"
#include "passes/passes.h"
#include "passes/scan.h"

namespace pgwarp::cuda
{

// How the queries of a search were answered.
struct ExactStatistics {
    std::uint64_t queries = 0;
    std::uint64_t filtered_again = 0;
    std::uint64_t tied = 0;  // beside so many rows too close to tell apart
    std::uint64_t scanned = 0;
};

// Chooses the kind of scores for the metric. Waits for the stream.
ExactRows make_exact_rows(MemoryPool& pool, Metric metric, const float* vectors, std::uint32_t rows,
                          std::uint32_t dimensions, cudaStream_t stream);

// answer.found must have room for `count` queries, values and rows for [count][answer.k]. queries: [count][dimensions],
// cosine queries normalised. Any k. Waits for the stream once a pass, to learn how many queries
// are unproven; the last answers may still be under way on return. `cancelled` is asked between pieces of work.
void search_exactly(Context& context, const ExactRows& rows, const float* queries, std::uint32_t count,
                    const DeadRows& dead, const ExactAnswer& answer, ExactStatistics& statistics,
                    const CancelToken* cancel, cudaStream_t stream);

}  // namespace pgwarp::cuda
