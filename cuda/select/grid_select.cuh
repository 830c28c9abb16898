// What the kernels of the grid method share: the rows of one round and the lists of what passed their thresholds.
#pragma once

#include <cuda_runtime.h>

#include "select/kernels.h"
#include "select/row_span.cuh"

namespace pgwarp::cuda::detail
{

struct CandidateLists {
    SelectKey* keys;        // [rows][capacity]
    unsigned* counts;       // [rows]: how many passed; past the capacity they were dropped
    SelectKey* thresholds;  // [rows], inclusive
    std::int64_t capacity;
};

// A row whose threshold let through too few or too many.
__device__ __forceinline__ bool misjudged(const CandidateLists& lists, std::int64_t row, std::int64_t k)
{
    const unsigned count = lists.counts[row];
    return count > lists.capacity || (count < k && lists.thresholds[row] != padding_key);
}

// Finds the exact thresholds of misjudged rows by radix selection over the row, all blocks together, and collects
// again. Returns at once when there are none. `histograms`: 6 * 2048 counters and 2 more.
inline constexpr std::size_t repair_words = 6 * 2048 + 64;
void repair_lists(const SelectOperands& operands, std::int64_t first_row, std::int64_t rows,
                  const CandidateLists& lists, unsigned* histograms, cudaStream_t stream);

}  // namespace pgwarp::cuda::detail
