// The values that searches return, with the bits of the CPU, computed by groups of 8 lanes. Lane i holds the
// accumulator of src/numeric/canonical.cpp that takes the elements i, i + 8, ...
#pragma once

#include <cfloat>
#include <cstdint>

#include "methods/bounds.h"
#include "rows/remote_row.cuh"
#include "rows/view.h"

namespace pgwarp::cuda::rows
{

// Adds the accumulators of 8 neighbouring lanes in the canonical order. All 8 lanes get the sum.
__device__ inline double canonical_total(double part)
{
    part = __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 4, 8));
    part = __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 1, 8));
    return __dadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 2, 8));
}

// Calls add(sum, a(i), b(i)) for each element in order. All lanes of the warp must call, each group of 8 with vectors
// of its own. The additions depend on each other but the reads do not, so several elements are read together.
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

// The float that a half of a row stands for.
__device__ inline float decoded_half(__half stored, float inverse, float mean)
{
    const float value = __fadd_rn(__fmul_rn(__half2float(stored), inverse), mean);
    const float capped = value < FLT_MAX ? value : FLT_MAX;
    return capped > -FLT_MAX ? capped : -FLT_MAX;
}

__device__ inline double half_value(const ResidentRows& resident, const float* query, double norm,
                                    std::uint32_t position)
{
    const __half* row = resident.half.rows + static_cast<std::size_t>(position) * resident.stride;
    const float inverse = __fdiv_rn(1.0F, resident.half.scale);
    const auto decoded = [&](std::uint32_t i) { return decoded_half(row[i], inverse, resident.half.mean[i]); };
    const auto given = [&](std::uint32_t i) { return query[i]; };
    double distance;
    if (resident.metric == Metric::l2) {
        distance = __dsqrt_rn(canonical_l2_squared_of(given, decoded, resident.dimensions));
    } else {
        distance = -canonical_dot_of(given, decoded, resident.dimensions);
        if (resident.metric == Metric::cosine) distance = __dadd_rn(distance, 1);
    }
    return lower_bound_of(resident.metric, distance, resident.half.error, norm);
}

__device__ inline double cosine_value(double product, double norms)
{
    const double similarity = __ddiv_rn(product, __dsqrt_rn(norms));
    double distance = __dsub_rn(1, similarity);
    if (similarity > 1) distance = 0;
    if (similarity < -1) distance = 2;
    return lower_bound_of(Metric::cosine, distance, 0, 1);
}

__device__ inline double full_value(const ResidentRows& resident, const float* query, std::uint32_t row)
{
    const float* vector = resident.full + static_cast<std::size_t>(row) * resident.dimensions;
    const auto given = [&](std::uint32_t i) { return query[i]; };
    const auto stored = [&](std::uint32_t i) { return vector[i]; };
    if (resident.metric == Metric::l2) return __dsqrt_rn(canonical_l2_squared_of(given, stored, resident.dimensions));
    const double product = canonical_dot_of(given, stored, resident.dimensions);
    if (resident.metric == Metric::inner_product) return -product;
    return cosine_value(product, __dmul_rn(canonical_dot_of(given, given, resident.dimensions),
                                           canonical_dot_of(stored, stored, resident.dimensions)));
}

// Sums over a row in host memory, in the canonical order: x is the sum of squared differences from the query or of
// products with it, y the sum of the row's squares. They are not inlined, as kernels would need more registers.
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

// The same bits as half_value() and full_value(), for a row in host memory.
__device__ inline double remote_half_value(const ResidentRows& resident, const float* query, double norm,
                                           std::uint32_t row)
{
    const bool squared = resident.metric == Metric::l2;
    const __half* stored = resident.remote.halves + static_cast<std::size_t>(row) * resident.remote.stride;
    const double2 sums = remote_half_sums(stored, resident.half.mean, __fdiv_rn(1.0F, resident.half.scale), query,
                                          resident.dimensions, squared);
    double distance = squared ? __dsqrt_rn(sums.x) : -sums.x;
    if (resident.metric == Metric::cosine) distance = __dadd_rn(distance, 1);
    return lower_bound_of(resident.metric, distance, resident.half.error, norm);
}

__device__ inline double remote_full_value(const ResidentRows& resident, const float* query, std::uint32_t row)
{
    const bool squared = resident.metric == Metric::l2;
    const float* stored = resident.remote.full + static_cast<std::size_t>(row) * resident.remote.stride;
    const double2 sums = remote_full_sums(stored, query, resident.dimensions, squared);
    if (squared) return __dsqrt_rn(sums.x);
    if (resident.metric == Metric::inner_product) return -sums.x;
    return cosine_value(sums.x, __dmul_rn(canonical_dot(query, query, resident.dimensions), sums.y));
}

}  // namespace pgwarp::cuda::rows
