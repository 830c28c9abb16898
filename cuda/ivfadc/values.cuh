// The values that searches return, computed by groups of 8 lanes, with the bits of
// src/methods/ivfadc/vector_stores.cpp: lane i holds the accumulator of src/numeric/canonical.cpp that takes the
// elements i, i + 8, ... Values of rows kept as codes are asymmetric distances in single precision, as in
// src/methods/ivfadc/code_store.cpp.
#pragma once

#include <cfloat>
#include <cstdint>

#include "ivfadc/remote_row.cuh"
#include "ivfadc/view.h"
#include "methods/bounds.h"

namespace pgwarp::cuda::ivfadc
{

// The accumulators of 8 neighbouring lanes, summed in the canonical order; all 8 get the sum.
__device__ inline double canonical_total(double part)
{
    part = __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 4, 8));
    part = __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 1, 8));
    return __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 2, 8));
}

// All lanes of the warp take part, each group of 8 with vectors of its own: add(sum, a(i), b(i)) for each element, in
// order. What is added waits for all that comes before it; reading must not, so several elements are read together.
template <class A, class B, class Add>
__device__ double canonical_sum_of(const A& a, const B& b, std::uint32_t dimensions, const Add& add)
{
    constexpr std::uint32_t together = 8;
    double sum = 0;
#pragma unroll 1
    for (std::uint32_t first = threadIdx.x % 8; first < dimensions; first += 8 * together) {
        float left[together];
        float right[together];
#pragma unroll
        for (std::uint32_t j = 0; j < together; ++j) {
            const std::uint32_t i = min(first + 8 * j, dimensions - 1);
            left[j] = a(i);
            right[j] = b(i);
        }
#pragma unroll
        for (std::uint32_t j = 0; j < together; ++j) {
            if (first + 8 * j < dimensions) sum = add(sum, static_cast<double>(left[j]), static_cast<double>(right[j]));
        }
    }
    return canonical_total(sum);
}

template <class A, class B>
__device__ double canonical_dot_of(const A& a, const B& b, std::uint32_t dimensions)
{
    return canonical_sum_of(a, b, dimensions,
                            [](double sum, double x, double y) { return __dadd_rn(sum, __dmul_rn(x, y)); });
}

template <class A, class B>
__device__ double canonical_l2_squared_of(const A& a, const B& b, std::uint32_t dimensions)
{
    return canonical_sum_of(a, b, dimensions, [](double sum, double x, double y) {
        const double difference = __dsub_rn(x, y);
        return __dadd_rn(sum, __dmul_rn(difference, difference));
    });
}

__device__ inline double canonical_dot(const float* a, const float* b, std::uint32_t dimensions)
{
    return canonical_dot_of([&](std::uint32_t i) { return a[i]; }, [&](std::uint32_t i) { return b[i]; }, dimensions);
}

// lower_bound() of src/methods/bounds.h.
__device__ inline double lower_bound_of(Metric metric, double value, double error, double query_norm)
{
    if (metric == Metric::l2) {
        const double bound = __dsub_rn(__dmul_rn(value, 1 - bound_rounding), error);
        return bound > 0 ? bound : 0.0;
    }
    if (metric == Metric::inner_product) {
        return __dsub_rn(__dsub_rn(value, __dmul_rn(query_norm, error)), __dmul_rn(fabs(value), bound_rounding));
    }
    return __dsub_rn(__dsub_rn(value, error), cosine_slack);
}

// An element of a row in half form, as it stands for the vector.
__device__ inline float decoded_half(__half stored, float inverse, float mean)
{
    const float value = __fadd_rn(__fmul_rn(__half2float(stored), inverse), mean);
    const float capped = value < FLT_MAX ? value : FLT_MAX;
    return capped > -FLT_MAX ? capped : -FLT_MAX;
}

__device__ inline double half_value(const MirrorView& mirror, const float* query, double norm, std::uint32_t position)
{
    const __half* row = mirror.half.rows + static_cast<std::size_t>(position) * mirror.stride;
    const float inverse = __fdiv_rn(1.0F, mirror.half.scale);
    const auto decoded = [&](std::uint32_t i) { return decoded_half(row[i], inverse, mirror.half.mean[i]); };
    const auto given = [&](std::uint32_t i) { return query[i]; };
    double distance;
    if (mirror.metric == Metric::l2) {
        distance = __dsqrt_rn(canonical_l2_squared_of(given, decoded, mirror.dimensions));
    } else {
        distance = -canonical_dot_of(given, decoded, mirror.dimensions);
        if (mirror.metric == Metric::cosine) distance = __dadd_rn(distance, 1);
    }
    return lower_bound_of(mirror.metric, distance, mirror.half.error, norm);
}

__device__ inline double cosine_value(double product, double norms)
{
    const double similarity = __ddiv_rn(product, __dsqrt_rn(norms));
    double distance = __dsub_rn(1, similarity);
    if (similarity > 1) distance = 0;
    if (similarity < -1) distance = 2;
    return lower_bound_of(Metric::cosine, distance, 0, 1);
}

__device__ inline double full_value(const MirrorView& mirror, const float* query, std::uint32_t row)
{
    const float* vector = mirror.vectors + static_cast<std::size_t>(row) * mirror.dimensions;
    const auto given = [&](std::uint32_t i) { return query[i]; };
    const auto stored = [&](std::uint32_t i) { return vector[i]; };
    if (mirror.metric == Metric::l2) return __dsqrt_rn(canonical_l2_squared_of(given, stored, mirror.dimensions));
    const double product = canonical_dot_of(given, stored, mirror.dimensions);
    if (mirror.metric == Metric::inner_product) return -product;
    return cosine_value(product, __dmul_rn(canonical_dot_of(given, given, mirror.dimensions),
                                           canonical_dot_of(stored, stored, mirror.dimensions)));
}

// Sums over a row in host memory, in the canonical order: of squared differences from the query or of products with
// it (x), and of the row's own squares (y). Functions of their own, so that kernels keep their registers.
__device__ __noinline__ inline double2 remote_half_sums(const __half* row, const float* mean, float inverse,
                                                        const float* query, std::uint32_t dimensions, bool squared)
{
    double sum = 0;
    for_each_remote(row, dimensions, [&](std::uint32_t d, __half stored) {
        const auto a = static_cast<double>(query[d]);
        const auto b = static_cast<double>(decoded_half(stored, inverse, mean[d]));
        const double difference = __dsub_rn(a, b);
        sum = __dadd_rn(sum, squared ? __dmul_rn(difference, difference) : __dmul_rn(a, b));
    });
    return {canonical_total(sum), 0};
}

__device__ __noinline__ inline double2 remote_full_sums(const float* row, const float* query, std::uint32_t dimensions,
                                                        bool squared)
{
    double sum = 0;
    double own = 0;
    for_each_remote(row, dimensions, [&](std::uint32_t d, float stored) {
        const auto a = static_cast<double>(query[d]);
        const auto b = static_cast<double>(stored);
        const double difference = __dsub_rn(a, b);
        sum = __dadd_rn(sum, squared ? __dmul_rn(difference, difference) : __dmul_rn(a, b));
        own = __dadd_rn(own, __dmul_rn(b, b));
    });
    return {canonical_total(sum), canonical_total(own)};
}

// half_value() and full_value() of a row in host memory: the same bits.
__device__ inline double remote_half_value(const MirrorView& mirror, const float* query, double norm, std::uint32_t row)
{
    const bool squared = mirror.metric == Metric::l2;
    const __half* stored = mirror.remote.halves + static_cast<std::size_t>(row) * mirror.remote.stride;
    const double2 sums = remote_half_sums(stored, mirror.half.mean, __fdiv_rn(1.0F, mirror.half.scale), query,
                                          mirror.dimensions, squared);
    double distance = squared ? __dsqrt_rn(sums.x) : -sums.x;
    if (mirror.metric == Metric::cosine) distance = __dadd_rn(distance, 1);
    return lower_bound_of(mirror.metric, distance, mirror.half.error, norm);
}

__device__ inline double remote_full_value(const MirrorView& mirror, const float* query, std::uint32_t row)
{
    const bool squared = mirror.metric == Metric::l2;
    const float* stored = mirror.remote.vectors + static_cast<std::size_t>(row) * mirror.remote.stride;
    const double2 sums = remote_full_sums(stored, query, mirror.dimensions, squared);
    if (squared) return __dsqrt_rn(sums.x);
    if (mirror.metric == Metric::inner_product) return -sums.x;
    return cosine_value(sums.x, __dmul_rn(canonical_dot(query, query, mirror.dimensions), sums.y));
}

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

// Of a row that is kept as bytes alone: the bits of src/methods/ivfadc/byte_store.cpp.
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

// The value of a position for a query; every group of 8 lanes has its own, all 32 lanes take part.
__device__ inline double row_value(const MirrorView& mirror, const QueryView& queries, std::uint32_t query,
                                   std::uint32_t list, std::uint32_t position)
{
    const float* original = queries.original + static_cast<std::size_t>(query) * mirror.dimensions;
    if (mirror.vectors != nullptr) return full_value(mirror, original, mirror.row_at[position]);
    if (mirror.remote.vectors != nullptr) return remote_full_value(mirror, original, mirror.row_at[position]);
    if (mirror.remote.halves != nullptr) {
        return remote_half_value(mirror, original, queries.norms[query], mirror.row_at[position]);
    }
    if (mirror.scans_bytes && mirror.values_of_residuals()) return byte_value(mirror, original, list, position);
    if (!mirror.scans_codes) return half_value(mirror, original, queries.norms[query], position);
    return code_value(mirror, original, queries.moved + static_cast<std::size_t>(query) * mirror.dimensions, list,
                      position);
}

}  // namespace pgwarp::cuda::ivfadc
