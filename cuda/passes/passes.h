// The passes over one slab of queries that every exact search is made of: a sample of the positions gives each query a
// first threshold; ranges of positions, each several times the last, are filtered by it and tighten it; what passed is
// ranked. For few queries of few rows there is one pass, in which each block proposes the best that it sees. Batches
// (exact_search.h) and few queries (exact/small_search.h) differ in where memory comes from and in waiting.
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

inline constexpr std::uint32_t largest_ranked_k = 512;  // above: passes/wide_search.h

// How a search of this k over so many rows goes about it.
struct Plan {
    std::uint32_t keep = 0;      // proposals wanted in the end: some more than k
    std::uint32_t sample = 0;    // positions of the sample
    std::uint32_t capacity = 0;  // entries a slot
    std::uint32_t growth = 0;    // of ranges
    std::uint32_t spare = 0;     // is added to the ranks of thresholds: a failed proof costs a few queries most
    std::uint32_t best = 0;      // of each best_group positions, without a threshold; 0: by thresholds
    bool list_all = false;       // so few rows that all are proposals
};

// k: at most largest_ranked_k and rows.
Plan make_plan(const Context& context, const ExactRows& rows, std::uint32_t k, std::uint32_t queries);

// Operands of the passes over `slots` queries: for each `capacity` entries and `maxima` maxima.
class Slab
{
public:
    // In device memory of its own.
    Slab(MemoryPool& pool, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
         cudaStream_t stream);
    // In the caller's. copies: room for queries that lie in page-locked memory.
    Slab(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity, std::uint32_t maxima,
         bool copies);

    // For `count` queries, of which the kernels will look at `padded` slots.
    void take(std::uint32_t count, std::uint32_t padded);
    // Filtered ones, and those of a plan.
    Proposals proposals(std::uint32_t capacity) const
    {
        return {entries, counts, thresholds, capacity, nullptr, 0, nullptr, 0};
    }
    Proposals proposals(const Plan& plan) const;

    PreparedQueries queries;
    Proposal* entries = nullptr;
    std::uint32_t* counts = nullptr;  // zeroed as queries are prepared, like the two that follow
    std::uint32_t* incomplete = nullptr;
    std::uint32_t* left_out = nullptr;
    float* thresholds = nullptr;
    float* maxima = nullptr;

private:
    void lay_out(Carver& memory, const ScoredRows& rows, std::uint32_t slots, std::uint32_t capacity,
                 std::uint32_t maxima_width, bool copies);

    DeviceArray<std::byte> memory_;
};

// What all passes of a search have in common.
struct Passes {
    Context* context = nullptr;
    const ExactRows* rows = nullptr;
    const float* penalties = nullptr;  // of all positions, dead rows marked
    const CancelToken* cancel = nullptr;
    cudaStream_t stream = nullptr;

    // Positions of `range` with scores above their query's threshold, or maxima.
    void filter(const Slab& slab, const Proposals& out, PositionRange range) const;
    // The nearest of all positions, by the plan. The slab's queries are prepared.
    void propose(const Slab& slab, const Plan& plan) const;
};

}  // namespace pgwarp::cuda
