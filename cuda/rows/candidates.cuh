// Sorting of a search's candidates in shared memory by their values, and writing of the answers. Called by whole
// blocks.
#pragma once

#include <cstdint>

#include "device/answers.h"
#include "rows/view.h"
#include "select/order_bits.h"
#include "select/shared_sort.cuh"

namespace pgwarp::cuda::rows
{

// Sorts `kept` candidates by (value key, row). Overwrites both arrays up to the next power of two.
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
    alternating_sort<Threads>(size, [&](int low, int high, bool ascending) {
        const std::uint64_t a = values[low];
        const std::uint64_t b = values[high];
        const std::uint32_t row_a = rows[low];
        const std::uint32_t row_b = rows[high];
        const bool after = a != b ? a > b : row_a > row_b;
        if (after != ascending) return;
        values[low] = b;
        values[high] = a;
        rows[low] = row_b;
        rows[high] = row_a;
    });
}

template <int Threads>
__device__ void emit_candidates(int kept, const std::uint64_t* values, const std::uint32_t* rows, std::uint32_t query,
                                std::uint32_t k, const Answers& out)
{
    for (int i = threadIdx.x; i < min(kept, static_cast<int>(k)); i += Threads) {
        out.values[static_cast<std::size_t>(query) * k + i] = double_of_order(values[i]);
        out.rows[static_cast<std::size_t>(query) * k + i] = rows[i];
    }
}

}  // namespace pgwarp::cuda::rows
