// Single-precision scores of one query against many rows, and conversions to and from binary16, with run-time dispatch.
#include "numeric/distance.h"

#include <cmath>
#include <limits>

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/distance.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "numeric/bits.h"
#include "numeric/half-inl.h"
#include "numeric/score_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

// Select the operation of the metric.
template <class Element, bool gathered, class RowAt>
HWY_INLINE void score_by_metric(Metric metric, const float* query, std::size_t count, std::size_t dimensions,
                                float* out, RowAt row_at)
{
    switch (metric) {
        case Metric::l2:
            return score_rows<SquaredDifference, Element, gathered>(query, count, dimensions, out, row_at);
        case Metric::inner_product:
        case Metric::cosine:
            return score_rows<NegativeProduct, Element, gathered>(query, count, dimensions, out, row_at);
        case Metric::l1:
            return score_rows<AbsoluteDifference, Element, gathered>(query, count, dimensions, out, row_at);
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            return;  // bits.cpp compares bits, edit_distance.cpp text, protocol/part_rows.h sets
    }
}

// Score consecutive rows.
template <class Element>
HWY_INLINE void score_dense(Metric metric, const float* query, const Element* rows, std::size_t count,
                            std::size_t dimensions, float* out)
{
    score_by_metric<Element, false>(metric, query, count, dimensions, out,
                                    [=](std::size_t i) HWY_ATTR { return rows + i * dimensions; });
}

// Score the rows with these ids.
template <class Element>
HWY_INLINE void score_gathered(Metric metric, const float* query, const Element* rows, const std::uint32_t* ids,
                               std::size_t count, std::size_t dimensions, float* out)
{
    score_by_metric<Element, true>(metric, query, count, dimensions, out,
                                   [=](std::size_t i) HWY_ATTR { return rows + std::size_t{ids[i]} * dimensions; });
}

// Entry points of one target: dispatch needs functions that are no templates.
void scores_float(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t dimensions,
                  float* out)
{
    score_dense(metric, query, rows, count, dimensions, out);
}

void scores_half(Metric metric, const float* query, const half_bits* rows, std::size_t count, std::size_t dimensions,
                 float* out)
{
    score_dense(metric, query, rows, count, dimensions, out);
}

void scores_float_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids,
                         std::size_t count, std::size_t dimensions, float* out)
{
    score_gathered(metric, query, rows, ids, count, dimensions, out);
}

void scores_half_gather(Metric metric, const float* query, const half_bits* rows, const std::uint32_t* ids,
                        std::size_t count, std::size_t dimensions, float* out)
{
    score_gathered(metric, query, rows, ids, count, dimensions, out);
}

void norms_float(const float* rows, std::size_t count, std::size_t dimensions, float* out)
{
    score_rows<SquaredValue, float, false>(rows, count, dimensions, out,
                                           [=](std::size_t i) HWY_ATTR { return rows + i * dimensions; });
}

void floats_to_half(const float* in, std::size_t count, half_bits* out)
{
    std::size_t i = 0;
    for (; i + lane_count <= count; i += lane_count) {
        hn::StoreU(float_to_half(Floats(), load(in + i)), Words(), out + i);
    }
    const hn::CappedTag<float, 1> one;
    const hn::Rebind<half_bits, decltype(one)> word;
    for (; i < count; ++i) hn::StoreU(float_to_half(one, hn::LoadU(one, in + i)), word, out + i);
}

void half_to_floats(const half_bits* in, std::size_t count, float* out)
{
    std::size_t i = 0;
    for (; i + lane_count <= count; i += lane_count) hn::StoreU(load(in + i), Floats(), out + i);
    for (; i < count; ++i) out[i] = load_one(in + i);
}

const char* target_name()
{
    return hwy::TargetName(HWY_TARGET);
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(scores_float);
HWY_EXPORT(scores_half);
HWY_EXPORT(scores_float_gather);
HWY_EXPORT(scores_half_gather);
HWY_EXPORT(norms_float);
HWY_EXPORT(floats_to_half);
HWY_EXPORT(half_to_floats);
HWY_EXPORT(target_name);

float score(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    float out;
    scores(metric, a, b, 1, dimensions, &out);
    return out;
}

void scores(Metric metric, const float* query, const float* rows, std::size_t count, std::size_t dimensions, float* out)
{
    if (is_of_bits(metric)) return bit_scores(metric, query, rows, count, dimensions, out);
    HWY_DYNAMIC_DISPATCH(scores_float)(metric, query, rows, count, dimensions, out);
}

void scores_gather(Metric metric, const float* query, const float* rows, const std::uint32_t* ids, std::size_t count,
                   std::size_t dimensions, float* out)
{
    if (is_of_bits(metric)) return bit_scores_gather(metric, query, rows, ids, count, dimensions, out);
    HWY_DYNAMIC_DISPATCH(scores_float_gather)(metric, query, rows, ids, count, dimensions, out);
}

void half_scores(Metric metric, const float* query, const half_bits* rows, std::size_t count, std::size_t dimensions,
                 float* out)
{
    HWY_DYNAMIC_DISPATCH(scores_half)(metric, query, rows, count, dimensions, out);
}

void half_scores_gather(Metric metric, const float* query, const half_bits* rows, const std::uint32_t* ids,
                        std::size_t count, std::size_t dimensions, float* out)
{
    HWY_DYNAMIC_DISPATCH(scores_half_gather)(metric, query, rows, ids, count, dimensions, out);
}

float squared_norm(const float* a, std::size_t dimensions)
{
    float out;
    HWY_DYNAMIC_DISPATCH(norms_float)(a, 1, dimensions, &out);
    return out;
}

void squared_norms(const float* rows, std::size_t count, std::size_t dimensions, float* out)
{
    HWY_DYNAMIC_DISPATCH(norms_float)(rows, count, dimensions, out);
}

void to_half(const float* in, std::size_t count, half_bits* out)
{
    HWY_DYNAMIC_DISPATCH(floats_to_half)(in, count, out);
}

void from_half(const half_bits* in, std::size_t count, float* out)
{
    HWY_DYNAMIC_DISPATCH(half_to_floats)(in, count, out);
}

const char* simd_target()
{
    return HWY_DYNAMIC_DISPATCH(target_name)();
}

// Notation: u = 2^-24, gamma(m) = m u / (1 - m u); n dimensions; q and r the norms. After m roundings a value is off by
// a factor within 1 +- gamma(m) (Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1). In a sum of n
// terms each term takes part in at most n - 1 additions, in any order; fused products only save roundings.
//   dot     product 1 + additions n-1:                gamma(n)   sum |q_i r_i|      <= gamma(n) q r
//   l2      difference twice (it is squared) + n:     gamma(n+2) sum (q_i - r_i)^2  <= gamma(n+2) (q + r)^2
//   l1      difference 1 + additions n-1:             gamma(n)   sum |q_i - r_i|    <= gamma(n) (q + r)
//   l2 tile |r|^2 with n roundings, the product with n, and one more for their difference; doubling is exact:
//           gamma(n+1) (r^2 + 2 q r) <= gamma(n+1) (q + r)^2. The bound is relative to norms, not to the result: near
//           duplicates cancel and lose every digit of their distance.
// The code adds four roundings, because the caller's norms may themselves be rounded down. Underflow loses less than
// 2^-126 an operation, even where results flush to zero, and there are at most 5 n operations. Where an operation may
// overflow, the bound is infinity.
float score_error_bound(Metric metric, std::size_t dimensions, float query_norm, float row_norm)
{
    constexpr float unbounded = std::numeric_limits<float>::infinity();
    if (is_of_bits(metric)) return 0x1p-24F;  // half a unit in the last place of a value up to 1; integers are exact
    const double roundings = (static_cast<double>(dimensions) + 6) * 0x1p-24;
    if (!(roundings < 0.5)) return unbounded;
    const double gamma = roundings / (1 - roundings);
    const double q = query_norm;
    const double r = row_norm;
    double magnitude = q + r;
    if (metric == Metric::l2) magnitude *= magnitude;
    if (metric == Metric::inner_product || metric == Metric::cosine) magnitude = q * r;
    if (!(magnitude * (1 + gamma) < std::numeric_limits<float>::max())) return unbounded;
    const double bound = gamma * magnitude + 5 * static_cast<double>(dimensions) * 0x1p-126;
    return std::nextafter(static_cast<float>(bound), unbounded);
}

}  // namespace pgwarp
#endif
