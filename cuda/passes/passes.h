// The passes of an exact search over one slab of queries. A sample of the positions gives each query a first threshold.
// Ranges of positions, each several times as long as the last, are filtered by the threshold and tighten it. The rows
// that pass are ranked. Few queries of few rows take a single pass, in which each block proposes the best rows of its
// positions. Batches (exact_search.h) and few queries (exact/small_search.h) differ in the owner of the memory and in
// their waits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/carver.h"
#include "device/context.h"
#include "distance/half_rows.h"
#include "numeric/parallel.h"
#include "passes/rank.h"

namespace pgwarp::cuda
{

struct ExactRows {
    Metric metric = Metric::l2;
    const float* vectors = nullptr;  // device, [rows][dimensions]
    std::uint32_t rows = 0;
    std::uint32_t dimensions = 0;
    ScoredRows scored;
};

inline constexpr std::uint32_t largest_ranked_k = 512;  // larger k: passes/wide_search.h

// The parameters of a search for k by `queries` queries.
struct Plan {
    std::uint32_t keep = 0;      // proposals wanted in the end: somewhat more than k
    std::uint32_t sample = 0;    // positions of the sample
    std::uint32_t capacity = 0;  // entries of a slot
    std::uint32_t growth = 0;    // ratio of the lengths of successive ranges
    std::uint32_t spare = 0;     // added to the ranks of thresholds of few queries, for which a failed proof costs most
    std::uint32_t best = 0;      // proposals from each best_group positions; 0: filter by thresholds
    bool list_all = false;       // all rows are proposals, as they are few
};

// k: at most largest_ranked_k and rows.rows.
Plan make_plan(const Context& context, const ExactRows& rows, std::uint32_t k, std::uint32_t queries);

// Operands of the passes over `slots` queries, with `capacity` entries and `maxima` maxima for each.
class Slab
{
public:
    // Allocates device memory of its own. Throws std::bad_alloc.
    Slab(MemoryPool& pool, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
         cudaStream_t stream);
    // Takes the caller's memory. copies: allot room for copies of queries that lie in page-locked memory.
    Slab(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
         bool copies);

    // Sets the number of queries, and the number of slots that the kernels read.
    void take(std::uint32_t count, std::uint32_t padded);
    // The proposals of a filter, and those of a plan.
    Proposals proposals(std::uint32_t capacity) const
    {
        return {entries, counts, thresholds, capacity, nullptr, 0, nullptr, 0};
    }
    Proposals proposals(const Plan& plan) const;

    PreparedQueries queries;
    Proposal* entries = nullptr;
    std::uint32_t* counts = nullptr;  // prepare_queries() zeroes it and the two that follow
    std::uint32_t* incomplete = nullptr;
    std::uint32_t* left_out = nullptr;
    float* thresholds = nullptr;
    float* maxima = nullptr;

private:
    void lay_out(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity,
                 std::uint32_t maxima_width, bool copies);

    DeviceArray<std::byte> memory_;
};

// The context that all passes of a search share.
struct Passes {
    Context* context = nullptr;
    const ExactRows* rows = nullptr;
    const float* penalties = nullptr;  // of all positions, dead rows marked
    const CancelToken* cancel = nullptr;
    cudaStream_t stream = nullptr;

    // Proposes the positions of `range` with scores above their query's threshold, or writes maxima. Throws CudaError,
    // and the exception of `cancel`.
    void filter(const Slab& slab, const Proposals& out, PositionRange range) const;
    // Proposes the nearest of all positions, by the plan. The slab's queries must be prepared.
    void propose(const Slab& slab, const Plan& plan) const;
};

}  // namespace pgwarp::cuda
