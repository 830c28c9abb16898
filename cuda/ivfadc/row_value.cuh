// The value of a position for a query, by the best form of its row. Values of rows kept only as product codes are
// asymmetric distances in single precision, as in src/methods/ivfadc/code_store.cpp. All others have the bits of the
// CPU's stores (src/methods/ivfadc).
#pragma once

#include <cstdint>

#include "ivfadc/view.h"
#include "rows/values.cuh"

namespace pgwarp::cuda::ivfadc
{

__device__ inline float group_sum(float part)
{
    for (int step = 4; step > 0; step /= 2) part += __shfl_xor_sync(0xffffffffU, part, step, 8);
    return part;
}

__device__ inline double code_value(const MirrorView& mirror, const float* query, const float* moved,
                                    std::uint32_t list, std::uint32_t position)
{
    const std::uint32_t width = mirror.dimensions / mirror.code.subquantizers;
    const std::uint32_t wider = mirror.dimensions % mirror.code.subquantizers;
    const bool squared = mirror.metric == Metric::l2;
    const float* centroid = mirror.centroids + static_cast<std::size_t>(list) * mirror.dimensions;
    float product = 0;
    float coarse = 0;
    const std::uint32_t lane = threadIdx.x % 8;
#pragma unroll 4
    for (std::uint32_t part = lane; part < mirror.code.subquantizers; part += 8) {
        const std::uint32_t begin = part * width + min(part, wider);
        const std::uint32_t span = width + (part < wider ? 1 : 0);
        const std::uint32_t word = mirror.code.codes[code_offset(position, part, mirror.code.code_groups)];
        const float* line =
            mirror.code.codebooks + static_cast<std::size_t>(begin) * 256 + static_cast<std::size_t>(word) * span;
        for (std::uint32_t d = 0; d < span; ++d) product += moved[begin + d] * line[d];
    }
#pragma unroll 4
    for (std::uint32_t d = lane; d < mirror.dimensions; d += 8) {
        if (squared) {
            const float difference = query[d] - centroid[d];
            coarse += difference * difference;
        } else {
            coarse -= query[d] * centroid[d];
        }
    }
    product = group_sum(product);
    coarse = group_sum(coarse);
    const float raw = squared ? coarse - 2 * product + mirror.row_terms[position] : coarse - product;
    if (squared) return __dsqrt_rn(raw > 0 ? static_cast<double>(raw) : 0.0);
    return mirror.metric == Metric::cosine ? __dadd_rn(1.0, raw) : static_cast<double>(raw);
}

// The value of a row that is kept only as bytes, with the bits of src/methods/ivfadc/byte_store.cpp.
__device__ inline double byte_value(const MirrorView& mirror, const float* query, std::uint32_t list,
                                    std::uint32_t position)
{
    const std::uint8_t* row = mirror.byte.rows + static_cast<std::size_t>(position) * mirror.byte.stride;
    const float* centroid = mirror.centroids + static_cast<std::size_t>(list) * mirror.dimensions;
    const float scale = mirror.byte.scales[position];
    const auto given = [&](std::uint32_t i) { return query[i]; };
    const auto decoded = [&](std::uint32_t i) {
        return __fadd_rn(__fmul_rn(scale, static_cast<float>(row[byte_place(i)] - 128)), centroid[i]);
    };
    if (mirror.metric == Metric::l2) return __dsqrt_rn(canonical_l2_squared_of(given, decoded, mirror.dimensions));
    const double negative = -canonical_dot_of(given, decoded, mirror.dimensions);
    return mirror.metric == Metric::cosine ? __dadd_rn(1, negative) : negative;
}

// The value of a position for a query. Every group of 8 lanes has its own position; all 32 lanes must call.
__device__ inline double row_value(const MirrorView& mirror, const QueryView& queries, std::uint32_t query,
                                   std::uint32_t list, std::uint32_t position)
{
    const float* original = queries.original + static_cast<std::size_t>(query) * mirror.dimensions;
    if (mirror.full != nullptr) return full_value(mirror, original, mirror.row_at[position]);
    if (mirror.remote.full != nullptr) return remote_full_value(mirror, original, mirror.row_at[position]);
    if (mirror.remote.halves != nullptr) {
        return remote_half_value(mirror, original, queries.norms[query], mirror.row_at[position]);
    }
    if (mirror.scans_bytes && mirror.values_of_residuals()) return byte_value(mirror, original, list, position);
    if (!mirror.scans_codes) return half_value(mirror, original, queries.norms[query], position);
    return code_value(mirror, original, queries.moved + static_cast<std::size_t>(query) * mirror.dimensions, list,
                      position);
}

}  // namespace pgwarp::cuda::ivfadc
