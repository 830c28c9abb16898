// The data that the kernels of the grid method share: the lists of keys that passed the thresholds of the rows of one
// round.
#pragma once

#include <cuda_runtime.h>

#include "select/kernels.h"
#include "select/row_span.cuh"

namespace pgwarp::cuda::detail
{

struct CandidateLists {
    SelectKey* keys;        // [rows][capacity]
    unsigned* counts;       // [rows]: keys that passed; those beyond the capacity were dropped
    SelectKey* thresholds;  // [rows], inclusive
    std::int64_t capacity;
};

// Whether the row's threshold let too few or too many keys pass.
__device__ __forceinline__ bool misjudged(const CandidateLists& lists, std::int64_t row, std::int64_t k)
{
    const unsigned count = lists.counts[row];
    return count > lists.capacity || (count < k && lists.thresholds[row] != padding_key);
}

// Finds the exact thresholds of misjudged rows by radix selection with the whole grid, and collects their keys again.
// Returns at once where no row is misjudged. histograms: repair_words words.
inline constexpr std::size_t repair_words = 6 * 2048 + 64;
void repair_lists(const SelectOperands& operands, std::int64_t first_row, std::int64_t rows,
                  const CandidateLists& lists, unsigned* histograms, cudaStream_t stream);

}  // namespace pgwarp::cuda::detail
