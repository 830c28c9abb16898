// The canonical distance (src/numeric/canonical.cpp) on the device, bit for bit: eight lanes work on a pair, lane j is
// accumulator j, and nothing is contracted to a fused multiply-add.
#pragma once

#include <cstdint>

#include "methods/bounds.h"
#include "numeric/metric.h"
#include "select/order_bits.h"

namespace pgwarp::cuda
{

inline constexpr int canonical_lanes = 8;  // lanes of a warp that share one pair

#ifdef __CUDACC__

namespace detail
{

// The mask of the eight lanes that the calling lane belongs to.
__device__ inline unsigned pair_lanes()
{
    return 0xFFU << (threadIdx.x & 24U);
}

// ((p0 + p4) + (p1 + p5)) + ((p2 + p6) + (p3 + p7)), in every lane.
__device__ inline double sum_pairwise(double part)
{
    const unsigned mask = pair_lanes();
    part = __dadd_rn(part, __shfl_xor_sync(mask, part, 4));
    part = __dadd_rn(part, __shfl_xor_sync(mask, part, 1));
    return __dadd_rn(part, __shfl_xor_sync(mask, part, 2));
}

__device__ inline double canonical_l2(const float* a, const float* b, std::uint32_t dimensions)
{
    double sum = 0;
#pragma unroll 16
    for (std::uint32_t i = threadIdx.x % canonical_lanes; i < dimensions; i += canonical_lanes) {
        const double difference = __dsub_rn(a[i], b[i]);
        sum = __dadd_rn(sum, __dmul_rn(difference, difference));
    }
    return __dsqrt_rn(sum_pairwise(sum));
}

__device__ inline double canonical_dot(const float* a, const float* b, std::uint32_t dimensions)
{
    double sum = 0;
#pragma unroll 16
    for (std::uint32_t i = threadIdx.x % canonical_lanes; i < dimensions; i += canonical_lanes) {
        sum = __dadd_rn(sum, __dmul_rn(a[i], b[i]));
    }
    return sum_pairwise(sum);
}

__device__ inline double canonical_l1(const float* a, const float* b, std::uint32_t dimensions)
{
    double sum = 0;
#pragma unroll 16
    for (std::uint32_t i = threadIdx.x % canonical_lanes; i < dimensions; i += canonical_lanes) {
        sum = __dadd_rn(sum, fabs(__dsub_rn(a[i], b[i])));
    }
    return sum_pairwise(sum);
}

__device__ inline double canonical_cosine(const float* a, const float* b, std::uint32_t dimensions)
{
    double ab = 0;
    double aa = 0;
    double bb = 0;
#pragma unroll 4
    for (std::uint32_t i = threadIdx.x % canonical_lanes; i < dimensions; i += canonical_lanes) {
        const double left = a[i];
        const double right = b[i];
        ab = __dadd_rn(ab, __dmul_rn(left, right));
        aa = __dadd_rn(aa, __dmul_rn(left, left));
        bb = __dadd_rn(bb, __dmul_rn(right, right));
    }
    ab = sum_pairwise(ab);
    aa = sum_pairwise(aa);
    bb = sum_pairwise(bb);
    const double similarity = __ddiv_rn(ab, __dsqrt_rn(__dmul_rn(aa, bb)));
    if (similarity > 1) return 0;
    if (similarity < -1) return 2;
    return __dsub_rn(1.0, similarity);
}

}  // namespace detail

// canonical_distance(metric, a, b, dimensions) in each of the eight lanes, all of which call it with the same pair.
__device__ inline double canonical_distance(Metric metric, const float* a, const float* b, std::uint32_t dimensions)
{
    switch (metric) {
        case Metric::l2:
            return detail::canonical_l2(a, b, dimensions);
        case Metric::inner_product:
            return -detail::canonical_dot(a, b, dimensions);
        case Metric::cosine:
            return detail::canonical_cosine(a, b, dimensions);
        case Metric::l1:
            return detail::canonical_l1(a, b, dimensions);
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            break;  // only floats have a canonical distance here
    }
    return 0;
}

// The value that exact search emits for a row: for cosine a lower bound of the operator's distance (methods/bounds.h).
__device__ inline double emitted_value(Metric metric, double distance)
{
    return metric == Metric::cosine ? __dsub_rn(distance, cosine_slack) : distance;
}

// Doubles as integers of the same order; the zeros are one value, NaN is last.
__device__ inline std::uint64_t ordered_key(double value)
{
    if (value != value) return ~0ULL - 1;
    return order_of(__dadd_rn(value, 0.0));
}

__device__ inline double value_of_key(Metric metric, std::uint64_t key)
{
    if (key == ~0ULL - 1) return __longlong_as_double(0x7FF8000000000000LL);
    const double value = double_of_order(key);
    // A zero inner product is emitted as its negative.
    return metric == Metric::inner_product && value == 0 ? -0.0 : value;
}

#endif

}  // namespace pgwarp::cuda
