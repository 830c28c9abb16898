// The step from proposals to the answer: canonical distances of the proposals that the error bound admits, and the
// proof that no other row belongs to the answer.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/answers.h"
#include "distance/proposals.h"

namespace pgwarp::cuda
{

inline constexpr std::uint32_t few_queries = 64;  // up to this number launches cost more than proposals

// The most entries of a slot that can be ranked: a power of two, by the shared memory of a block.
inline std::uint32_t largest_capacity(const Context& context)
{
    return context.shared_bytes_per_block() > 20 * 4096 + 1024 ? 4096 : 2048;
}

// The answer, on the device or in page-locked memory: [queries][k] each, and the number of rows found for each query.
struct ExactAnswer {
    double* values = nullptr;
    std::uint32_t* rows = nullptr;
    std::uint32_t* found = nullptr;
    std::uint32_t k = 0;
};

// In `found`: low precision could not prove the answer.
inline constexpr std::uint32_t not_proved = no_answer;

// The queries without a proof. For a query in `filter`, all rows with scores above its threshold contain the answer.
// For queries in `scan` nothing is known.
struct Unproven {
    std::uint32_t* filter = nullptr;  // [queries], ids
    float* thresholds = nullptr;      // [queries], of the queries in `filter`
    std::uint32_t* scan = nullptr;    // [queries], ids
    std::uint32_t* counts = nullptr;  // [2]: lengths of filter and scan
};

struct RankJob {
    const ScoredRows* rows = nullptr;
    const float* vectors = nullptr;
    PreparedQueries queries;
    const std::uint32_t* ids = nullptr;  // [slots]; null: the id of a slot is first + slot
    std::uint32_t first = 0;
    Proposals proposals;
    const std::uint32_t* incomplete = nullptr;  // [slots]; null: no slot is incomplete
    ExactAnswer answer;
    Unproven unproven;        // where its lists are null, found[] is set to not_proved instead
    bool host_waits = false;  // the host reads found[] while the kernel runs, so it is written last
};

// Writes the answers with a proof and lists the others in job.unproven. A query that needs more canonical distances
// than fit the time of a launch goes to the scan. Asynchronous. Throws CudaError.
void rank_proposals(Context& context, const RankJob& job, cudaStream_t stream);

}  // namespace pgwarp::cuda
