// Exact search for k beyond what rank.h ranks, up to some ten thousand: the same proposals, by a threshold from a
// sample that lets through a little more than k; canonical distances of all that passed, sorted, and the same proof.
// Memory is bounded: queries go in slabs.
#pragma once

#include <cstdint>

#include "passes/dead_rows.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// How a wide search goes about it; capacity 0: so many of the rows are asked for, or so many at all, that a scan of all
// rows serves better.
struct WidePlan {
    std::uint32_t sample = 0;     // positions
    std::uint32_t threshold = 0;  // rank of the threshold among the sample's maxima
    std::uint32_t capacity = 0;   // entries a slot: a power of two
};

// shared_bytes: what a block may have.
WidePlan make_wide_plan(std::uint32_t positions, std::uint32_t rows, std::uint32_t k, std::size_t shared_bytes);

// Operands and answer on the device, as for search_exactly(). found[] says not_proved where a scan is needed.
// Waits in between where that is much work, not for its end.
void search_widely(Context& context, const ExactRows& rows, const WidePlan& plan, const float* queries,
                   std::uint32_t count, const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel,
                   cudaStream_t stream);

}  // namespace pgwarp::cuda
