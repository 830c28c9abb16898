// The values of a search's candidates. Called by whole blocks.
#pragma once

#include <cstdint>

#include "ivfadc/row_value.cuh"
#include "select/order_bits.h"

namespace pgwarp::cuda::ivfadc
{

// The list that holds a position.
__device__ inline std::uint32_t list_at(const MirrorView& mirror, std::uint32_t position)
{
    std::uint32_t low = 0;
    std::uint32_t high = mirror.lists;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        (mirror.list_begin[middle] <= position ? low : high) = middle;
    }
    // An empty list begins where the next one does, so this is the last list that begins at or before the position.
    return low;
}

// Replaces positions rows[0, kept) by row numbers and writes the keys of their values to values[0, kept). The caller
// has a barrier before the call. Ends with a barrier.
template <int Threads>
__device__ void value_candidates(const MirrorView& mirror, const QueryView& queries, std::uint32_t query, int kept,
                                 std::uint64_t* values, std::uint32_t* rows)
{
    // Each group of 8 lanes computes a candidate. The break is uniform in a warp, as all lanes take part in the
    // shuffles.
    for (int base = 0; base < kept; base += Threads / 8) {
        const int at = base + static_cast<int>(threadIdx.x) / 8;
        if (base + static_cast<int>(threadIdx.x / 32) * 4 >= kept) break;
        const std::uint32_t position = rows[min(at, kept - 1)];
        const std::uint32_t row = mirror.row_at[position];
        const std::uint32_t list = mirror.values_of_residuals() ? list_at(mirror, position) : 0;
        const double value = row_value(mirror, queries, query, list, position);
        // All lanes have read their positions.
        __syncwarp();
        if (at < kept && threadIdx.x % 8 == 0) {
            values[at] = order_of(value);
            rows[at] = row;
        }
    }
    __syncthreads();
}

}  // namespace pgwarp::cuda::ivfadc
