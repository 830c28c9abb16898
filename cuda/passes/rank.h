// From proposals to the answer: canonical distances of as many of them as the error bound asks for, and the proof that
// nothing else belongs to it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "distance/proposals.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t few_queries = 64;  // for which launches cost more than proposals

// Entries a slot that can be ranked: a power of two, by what shared memory a block may have.
inline std::uint32_t largest_capacity(const Context& context)
{
    return context.shared_bytes_per_block() > 20 * 4096 + 1024 ? 4096 : 2048;
}

// The answer, on the device or in page-locked memory: [queries][k] each, and how many rows were found for each query.
struct ExactAnswer {
    double* values = nullptr;
    std::uint32_t* rows = nullptr;
    std::uint32_t* found = nullptr;
    std::uint32_t k = 0;
};

// In place of how many were found: what low precision cannot prove.
inline constexpr std::uint32_t not_proved = no_answer;

// What could not be proved. A query in `filter` is answered by all rows with scores above its threshold; of those in
// `scan` there is nothing known.
struct Unproven {
    std::uint32_t* filter = nullptr;  // [queries], ids
    float* thresholds = nullptr;      // [queries], of `filter`
    std::uint32_t* scan = nullptr;    // [queries], ids
    std::uint32_t* counts = nullptr;  // [2]: how many are in filter and in scan
};

struct RankJob {
    const ScoredRows* rows = nullptr;
    const float* vectors = nullptr;
    PreparedQueries queries;
    const std::uint32_t* ids = nullptr;  // of the slots; null: first + slot
    std::uint32_t first = 0;
    Proposals proposals;
    const std::uint32_t* incomplete = nullptr;  // [slots]; null: none is
    ExactAnswer answer;
    Unproven unproven;        // without lists, found[] says not_proved
    bool host_waits = false;  // the host reads found[] while the kernel runs: it is written last
};

// Answers are written where proved. A query that asks for canonical distances of more elements
// than a launch may take time for is left to the scan.
void rank_proposals(Context& context, const RankJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda
