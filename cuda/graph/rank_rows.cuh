// The ranking of rank.h for one query by a whole block.
#pragma once

#include <cstdint>

#include "graph/row_scores.cuh"
#include "graph/view.h"
#include "rows/candidates.cuh"
#include "rows/values.cuh"

namespace pgwarp::cuda::graph
{

// The sum of absolute differences, for each form of the row.
__device__ inline double l1_value(const GraphView& view, const float* query, std::uint32_t row)
{
    const rows::ResidentRows& vectors = view.vectors;
    const auto add = [](double sum, double asked, double stored) {
        return __dadd_rn(sum, fabs(__dsub_rn(asked, stored)));
    };
    const auto given = [query](std::uint32_t d) { return query[d]; };
    if (vectors.remote.full != nullptr) {
        double sum = 0;
        rows::for_each_remote(vectors.remote.full + static_cast<std::size_t>(row) * vectors.remote.stride,
                              vectors.dimensions,
                              [&](std::uint32_t d, float stored) { sum = add(sum, query[d], stored); });
        return rows::canonical_total(sum);
    }
    if (vectors.full != nullptr) {
        const float* stored = vectors.full + static_cast<std::size_t>(row) * vectors.dimensions;
        return rows::canonical_sum_of(
            given, [stored](std::uint32_t d) { return stored[d]; }, vectors.dimensions, add);
    }
    const __half* stored = vectors.half.rows + static_cast<std::size_t>(row) * vectors.stride;
    const float* mean = vectors.half.mean;
    const float inverse = __fdiv_rn(1.0F, vectors.half.scale);
    const auto decoded = [=](std::uint32_t d) { return rows::decoded_half(stored[d], inverse, mean[d]); };
    const double total = rows::canonical_sum_of(given, decoded, vectors.dimensions, add);
    const double bound = __dsub_rn(__dmul_rn(total, 1 - bound_rounding), view.l1_error);
    return bound > 0 ? bound : 0.0;
}

// The value of a row. Each group of 8 lanes has its own row; all 32 lanes must call.
__device__ inline double value_of(const GraphView& view, const RankQueries& queries, std::uint32_t query,
                                  std::uint32_t row)
{
    if (view.has_bits()) {
        return static_cast<double>(differing_bits(view.bits.rows + static_cast<std::size_t>(row) * view.bits.words,
                                                  queries.bits + static_cast<std::size_t>(query) * view.bits.words,
                                                  view.bits.words));
    }
    const rows::ResidentRows& vectors = view.vectors;
    const float* original = queries.original + static_cast<std::size_t>(query) * vectors.dimensions;
    if (view.metric == Metric::l1) return l1_value(view, original, row);
    if (vectors.full != nullptr) return rows::full_value(vectors, original, row);
    if (vectors.remote.full != nullptr) return rows::remote_full_value(vectors, original, row);
    return rows::half_value(vectors, original, queries.norms[query], row);
}

// Writes the keys of the values of rows numbers[0, kept); both arrays are in shared memory. The caller has a barrier
// before the call. Ends with a barrier.
__device__ inline void value_rows(const GraphView& view, const RankQueries& queries, std::uint32_t query, int kept,
                                  const std::uint32_t* numbers, std::uint64_t* values)
{
    const auto together = static_cast<int>(blockDim.x / 8);
    // Each group of 8 lanes computes a row. The break is uniform in a warp, as all lanes take part in the shuffles.
    for (int base = 0; base < kept; base += together) {
        const int at = base + static_cast<int>(threadIdx.x / 8);
        if (base + static_cast<int>(threadIdx.x / 32) * 4 >= kept) break;
        const double value = value_of(view, queries, query, numbers[min(at, kept - 1)]);
        if (at < kept && threadIdx.x % 8 == 0) values[at] = order_of(__dadd_rn(value, 0.0));
    }
    __syncthreads();
}

// Writes each row to the place given by the number of rows before it, which 8 lanes count: for few rows faster than a
// sort.
__device__ inline void emit_counted(int kept, const std::uint64_t* values, const std::uint32_t* numbers,
                                    std::uint32_t query, std::uint32_t k, const Answers& out)
{
    const auto together = static_cast<int>(blockDim.x / 8);
    for (int base = 0; base < kept; base += together) {
        const int own = min(base + static_cast<int>(threadIdx.x / 8), kept - 1);
        const std::uint64_t value = values[own];
        const std::uint32_t number = numbers[own];
        std::uint32_t place = 0;
        for (int j = static_cast<int>(threadIdx.x % 8); j < kept; j += 8) {
            place += values[j] < value || (values[j] == value && numbers[j] < number) ? 1 : 0;
        }
        for (int step = 4; step > 0; step /= 2) place += __shfl_xor_sync(0xffffffffU, place, step);
        if (threadIdx.x % 8 != 0 || place >= k) continue;
        out.values[static_cast<std::size_t>(query) * k + place] = double_of_order(value);
        out.rows[static_cast<std::size_t>(query) * k + place] = number;
    }
}

// Writes found[], which the host may poll, after all other parts of the answer.
__device__ inline void report_found(int kept, std::uint32_t query, const Answers& out)
{
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(&out.found[query]) = static_cast<std::uint32_t>(kept);
}

}  // namespace pgwarp::cuda::graph
