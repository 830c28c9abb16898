// Exact search for k from largest_ranked_k up to some ten thousand. Proposals pass a threshold from a sample that
// admits somewhat more than k rows; all of them get canonical distances and are sorted, and the proof is that of
// rank.h. Memory is bounded: queries are searched in slabs.
#pragma once

#include <cstdint>

#include "passes/dead_rows.h"
#include "passes/passes.h"

namespace pgwarp::cuda
{

// The parameters of a wide search. capacity 0: k is so large, absolutely or as a share of the rows, that a scan of all
// rows is faster or the only way.
struct WidePlan {
    std::uint32_t sample = 0;     // positions
    std::uint32_t threshold = 0;  // rank of the threshold among the sample's maxima
    std::uint32_t capacity = 0;   // entries of a slot: a power of two
};

// shared_bytes: the most shared memory of a block.
WidePlan make_wide_plan(std::uint32_t positions, std::uint32_t rows, std::uint32_t k, std::size_t shared_bytes);

// Operands and answer on the device, as for search_exactly(). Sets found[] to not_proved where a scan is needed. May
// wait in between (pace.h), but not for the end. Throws std::bad_alloc, CudaError, and the exception of `cancel`.
void search_widely(Context& context, const ExactRows& rows, const WidePlan& plan, const float* queries,
                   std::uint32_t count, const DeadRows& dead, const ExactAnswer& answer, const CancelToken* cancel,
                   cudaStream_t stream);

}  // namespace pgwarp::cuda
