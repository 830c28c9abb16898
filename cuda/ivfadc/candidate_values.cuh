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
    // Empty lists begin where the next one does.
    return low;
}

// rows[0, kept): positions in, row numbers out. values[0, kept) gets the keys of their values. A barrier comes before
// and after.
template <int Threads>
__device__ void value_candidates(const MirrorView& mirror, const QueryView& queries, std::uint32_t query, int kept,
                                 std::uint64_t* values, std::uint32_t* rows)
{
    // Each group of 8 lanes takes a candidate; whole warps stay together.
    for (int base = 0; base < kept; base += Threads / 8) {
        const int at = base + static_cast<int>(threadIdx.x) / 8;
        if (base + static_cast<int>(threadIdx.x / 32) * 4 >= kept) break;
        const std::uint32_t position = rows[min(at, kept - 1)];
        const std::uint32_t row = mirror.row_at[position];
        const std::uint32_t list = mirror.values_of_residuals() ? list_at(mirror, position) : 0;
        const double value = row_value(mirror, queries, query, list, position);
        __syncwarp();  // all lanes have their positions
        if (at < kept && threadIdx.x % 8 == 0) {
            values[at] = order_of(value);
            rows[at] = row;
        }
    }
    __syncthreads();
}

}  // namespace pgwarp::cuda::ivfadc
