// What the last steps of a search share: values of candidates, their order and the answers. Called by whole blocks.
#pragma once

#include <cstdint>

#include "ivfadc/finish.h"
#include "ivfadc/order_key.cuh"
#include "ivfadc/values.cuh"

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
            values[at] = order_key(value);
            rows[at] = row;
        }
    }
    __syncthreads();
}

// Sorts by (value key, row); overwrites up to the next power of two.
template <int Threads>
__device__ void sort_candidates(int kept, std::uint64_t* values, std::uint32_t* rows)
{
    int size = 2;
    while (size < kept) size *= 2;
    for (int i = kept + threadIdx.x; i < size; i += Threads) {
        values[i] = ~std::uint64_t{0};
        rows[i] = no_row;
    }
    __syncthreads();
    for (int span = 2; span <= size; span *= 2) {
        for (int step = span / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < size / 2; i += Threads) {
                const int low = 2 * step * (i / step) + i % step;
                const int high = low + step;
                const std::uint64_t a = values[low];
                const std::uint64_t b = values[high];
                const std::uint32_t row_a = rows[low];
                const std::uint32_t row_b = rows[high];
                const bool after = a != b ? a > b : row_a > row_b;
                if (after == ((low & span) == 0)) {
                    values[low] = b;
                    values[high] = a;
                    rows[low] = row_b;
                    rows[high] = row_a;
                }
            }
            __syncthreads();
        }
    }
}

template <int Threads>
__device__ void emit_candidates(int kept, const std::uint64_t* values, const std::uint32_t* rows, std::uint32_t query,
                                std::uint32_t k, const Answers& out)
{
    for (int i = threadIdx.x; i < min(kept, static_cast<int>(k)); i += Threads) {
        out.values[static_cast<std::size_t>(query) * k + i] = value_of_key(values[i]);
        out.rows[static_cast<std::size_t>(query) * k + i] = rows[i];
    }
}

}  // namespace pgwarp::cuda::ivfadc
