// Bounds of distances that another library computes in float32, where the canonical routine uses float64. Indexes on
// pgvector's own types order rows by pgvector's operators, which are such a library's.
//
// Claim. Let u = 2^-24, n the number of terms of a sum, m = n + 4, and g = mu / (1 - mu). The library adds up its terms
// in float32, in any order, with or without fused multiply-add, and rounds to nearest. Then, unless a sum overflows, it
// returns for
//   L2             sqrt(t), where t lies within gs + e of s = the canonical distance squared,
//   L1             t within gs of s = the canonical distance,
//   inner product  t within g|a||b| + e of it,
//   cosine         t within 2h / (1 - h) of it, where h = g + e / min(|a|, |b|)^2, if h < 1/2,
// with e = n 2^-149 for products that underflow. Sums over dense vectors have a term for each dimension, sums over
// sparse ones a term for each index that counts.
//
// Proof. A term passes through at most n roundings: that of its product and n - 1 of sums (Higham, Accuracy and
// Stability of Numerical Algorithms, section 4.2: the same for every order of summation). A fused operation leaves one
// out, and the sum with an initial zero is exact. A difference of floats adds one rounding, and its square two. Each
// rounding is a factor (1 + d), |d| <= u. At most n + 2 of them are a factor within n + 2 units of g: (1 + q), |q| <=
// g. So a sum of terms x_i is off by at most g sum|x_i|, which is gs where no term is negative, and g|a||b| for
// products (Cauchy-Schwarz). A product that underflows is off by 2^-150 instead, and a sum or a difference that
// underflows is exact; n such errors, with the roundings that follow, are less than e.
//   The cosine is p / sqrt(AB), where p is the inner product and A, B are the norms squared: p is off by h|a||b|, A and
// B are factors within 1 +- h of |a|^2 and |b|^2, and the quotient is computed in float64. As |cos| <= 1, it is off by
// at most h / (1 - h) for the norms and as much for p. Clamping it to [-1, 1] brings it nearer.
//   The two roundings that m has more than n + 2 cover those of float64: of the canonical routine (n 2^-53), of roots
// and of this code.
//   A sum overflows only if (1 + g) sum|x_i| exceeds the largest float. Then a sum of terms of one sign is infinite,
//   and
// one of both signs may be NaN. Norms that over- or underflow make a cosine NaN or arbitrary. PostgreSQL sorts NaN
// after every number, so an interval without an upper end holds it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "numeric/metric.h"

namespace pgwarp
{

// A distance lies in [lower, upper].
struct DistanceBounds {
    double lower;
    double upper;
};

// The norms of vectors, in eighths of powers of two: all that are not zero lie between the least and the greatest.
// Stored in metapages.
struct NormRange {
    std::uint16_t least;     // of them, plus norm_bias; 0: there are none
    std::uint16_t greatest;  // the same
};
inline constexpr int norm_bias = 8192;
inline constexpr double norm_steps = 8;  // in a factor of two

inline bool is_none(NormRange range)
{
    return range.least == 0;
}

// The steps that surely lie on either side of a norm, though the logarithm is rounded. A zero has no part.
inline NormRange norm_range(double norm)
{
    constexpr double slack = 1e-3;
    if (!(norm > 0) || std::isinf(norm)) return {0, 0};
    const double steps = norm_steps * std::log2(norm);
    return {static_cast<std::uint16_t>(static_cast<int>(std::floor(steps - slack)) + norm_bias),
            static_cast<std::uint16_t>(static_cast<int>(std::ceil(steps + slack)) + norm_bias)};
}

inline NormRange join_ranges(NormRange a, NormRange b)
{
    if (is_none(a) || is_none(b)) return is_none(a) ? b : a;
    return {std::min(a.least, b.least), std::max(a.greatest, b.greatest)};
}

inline double least_norm(NormRange range)
{
    if (is_none(range)) return std::numeric_limits<double>::infinity();
    return std::exp2((range.least - norm_bias) / norm_steps);
}

inline double greatest_norm(NormRange range)
{
    return is_none(range) ? 0 : std::exp2((range.greatest - norm_bias) / norm_steps);
}

// Whether the bounds of a metric depend on norms.
inline constexpr bool bounds_need_norms(Metric metric)
{
    return metric == Metric::inner_product || metric == Metric::cosine;
}

// The most terms of a sum that such a library adds up for sparse vectors of these dimensions, of which the query has
// this many elements: those of the indices of either vector, of both (inner products), or of one (norms).
inline std::size_t sparse_terms(Metric metric, std::size_t elements, std::size_t dimensions)
{
    constexpr std::size_t most_elements = 16000;  // of a row
    if (metric == Metric::inner_product) return elements;
    if (metric == Metric::cosine) return std::max(elements, std::min(dimensions, most_elements));
    return std::min(dimensions, elements + most_elements);
}

// Distances of one query to rows, as such a library computes them.
class Float32Distance
{
public:
    // The norms matter where bounds_need_norms().
    Float32Distance(Metric metric, std::size_t terms, double query_norm, NormRange rows)
        : metric_(metric),
          share_(share_of(terms)),
          underflow_(static_cast<double>(terms) * 0x1p-149),
          least_(std::min(query_norm, least_norm(rows))),
          most_(std::max(query_norm, greatest_norm(rows))),
          product_(query_norm * greatest_norm(rows))
    {
    }

    // Whether the library may return NaN for vectors that have a canonical distance.
    bool may_be_nan() const
    {
        if (metric_ == Metric::cosine) return !is_safe_cosine();
        return metric_ == Metric::inner_product && product_ + product_error() > largest;
    }

    // The bounds of the library's distance, by those of the canonical one. They grow with the latter.
    DistanceBounds bound(DistanceBounds canonical) const
    {
        switch (metric_) {
            case Metric::l2:
                return bound_root(canonical);
            case Metric::l1:
                return {lower_sum(canonical.lower), upper_sum(canonical.upper)};
            case Metric::inner_product:
                return bound_product(canonical);
            case Metric::cosine:
                return bound_cosine(canonical);
            default:
                return {-infinity, infinity};
        }
    }

private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double largest = std::numeric_limits<float>::max();

    static double share_of(std::size_t terms)
    {
        const double roundings = (static_cast<double>(terms) + 4) * 0x1p-24;
        return roundings / (1 - roundings);
    }

    double lower_sum(double sum) const { return std::max(0.0, sum * (1 - share_)); }
    double upper_sum(double sum) const { return up_to_largest(sum * (1 + share_)); }
    static double up_to_largest(double sum) { return sum > largest ? infinity : sum; }

    DistanceBounds bound_root(DistanceBounds canonical) const
    {
        const double lower = std::max(0.0, canonical.lower);
        const double upper = std::max(0.0, canonical.upper);
        return {std::sqrt(std::max(0.0, lower * lower * (1 - share_) - underflow_)),
                std::sqrt(up_to_largest(upper * upper * (1 + share_) + underflow_))};
    }

    double product_error() const { return share_ * product_ + underflow_; }

    DistanceBounds bound_product(DistanceBounds canonical) const
    {
        const double error = product_error();
        if (product_ + error > largest) return {-infinity, infinity};
        return {canonical.lower - error, canonical.upper + error};
    }

    // The part of a norm squared by which the library's may be off: h.
    double norm_share() const { return share_ + underflow_ / (least_ * least_); }

    bool is_safe_cosine() const
    {
        const double share = norm_share();
        return share < 0.5 && most_ * most_ * (1 + share) <= largest;
    }

    DistanceBounds bound_cosine(DistanceBounds canonical) const
    {
        if (!is_safe_cosine()) return {0, infinity};
        const double share = norm_share();
        const double error = 2 * share / (1 - share);
        return {std::max(0.0, canonical.lower - error), std::min(2.0, canonical.upper + error)};
    }

    Metric metric_;
    double share_;      // g
    double underflow_;  // e
    double least_;      // norm of the query and the rows
    double most_;
    double product_;  // of the query's norm and the greatest of the rows
};

}  // namespace pgwarp
