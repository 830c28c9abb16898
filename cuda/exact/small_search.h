// Exact search of few queries, made for low latency: overlapping launches, queries read from page-locked memory and
// answers written there. Queries without a proof are marked not_proved and left to passes/exact_search.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/searcher.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

struct SmallPlan : ChunkPlan {
    Plan passes;
    std::uint32_t slots = 0;
};

bool serves_small(const ExactRows& rows, std::size_t count, std::uint32_t k);

// Requires serves_small(rows, count, k). k: at most rows.rows.
SmallPlan plan_small_search(const Context& context, const ExactRows& rows, std::size_t count, std::uint32_t k);

// penalties: of all positions, with dead rows marked; null where no row is dead.
void enqueue_small_search(Context& context, const ExactRows& rows, const SmallPlan& plan, const Chunk& chunk,
                          const float* penalties);

}  // namespace pgwarp::cuda
