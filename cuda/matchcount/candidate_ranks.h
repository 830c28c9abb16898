// The ranking of candidates, rows of large counts, by their distances.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/answers.h"
#include "device/context.h"
#include "matchcount/counted_rows.h"
#include "numeric/metric.h"

namespace pgwarp::cuda::matchcount
{

// All device memory.
struct Candidates {
    const float* queries = nullptr;  // [count][dimensions]
    std::uint32_t count = 0;
    std::uint32_t wanted = 0;              // places of a query
    const std::uint32_t* rows = nullptr;   // [count][wanted]
    const std::uint32_t* found = nullptr;  // [count]
};

// The vectors of all rows, in device memory.
struct RankedVectors {
    Metric metric = Metric::l2;
    std::uint32_t dimensions = 0;
    const float* vectors = nullptr;  // [rows][dimensions]
};

// All functions are asynchronous and throw CudaError.

// values[query][i] = the value that a search returns for the query's candidate i (methods/bounds.h), with the CPU's
// bits.
void value_candidates(const RankedVectors& vectors, const Candidates& candidates, double* values, cudaStream_t stream);

// Whether rank_candidates() has the shared memory for `wanted` candidates.
bool ranks_on_device(std::uint32_t wanted, const Context& context);
// Writes the k first candidates of each query by (value, row); `out` may be page-locked memory.
void rank_candidates(const Candidates& candidates, const double* values, std::uint32_t k, const Answers& out,
                     cudaStream_t stream);

// Writes the first k of counted rows [count][k] with minus the share of functions that they match as values. Rows that
// match none are left out.
void estimate_similarities(const CountedRows& counted, std::uint32_t count, std::uint32_t k, std::uint32_t functions,
                           const Answers& out, cudaStream_t stream);

}  // namespace pgwarp::cuda::matchcount
