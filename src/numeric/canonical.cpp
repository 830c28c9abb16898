// Canonical distances: eight float64 accumulators, element i always goes into accumulator i % 8, and the accumulators
// are summed pairwise at the end. Every target keeps this structure and none uses fused multiply-add, so all targets
// give the same bits.
#include <cmath>

#include "numeric/bits.h"
#include "numeric/metric.h"

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/canonical.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "numeric/half-inl.h"

#ifndef PGWARP_CANONICAL_SUM_KIND
#define PGWARP_CANONICAL_SUM_KIND
namespace pgwarp
{
enum class SumKind { l2_squared, dot, l1 };
}  // namespace pgwarp
#endif

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kAccumulators = 8;
using Doubles = hn::CappedTag<double, kAccumulators>;
using Floats = hn::Rebind<float, Doubles>;
constexpr std::size_t kLanes = hn::MaxLanes(Doubles());
constexpr std::size_t kVectors = kAccumulators / kLanes;

HWY_INLINE hn::Vec<Doubles> load(const float* values)
{
    return hn::PromoteTo(Doubles(), hn::LoadU(Floats(), values));
}
HWY_INLINE hn::Vec<Doubles> load(const half_bits* values)
{
    return hn::PromoteTo(Doubles(), half_to_float(Floats(), hn::LoadU(hn::Rebind<half_bits, Floats>(), values)));
}
HWY_INLINE double load_one(float value)
{
    return value;
}
HWY_INLINE double load_one(half_bits value)
{
    return float_of_half(value);
}

struct SquaredDifference {
    template <class V>
    static V term(V a, V b)
    {
        const V difference = hn::Sub(a, b);
        return hn::Mul(difference, difference);
    }
    static double scalar(double a, double b) { return (a - b) * (a - b); }
};

struct Product {
    template <class V>
    static V term(V a, V b)
    {
        return hn::Mul(a, b);
    }
    static double scalar(double a, double b) { return a * b; }
};

struct AbsoluteDifference {
    template <class V>
    static V term(V a, V b)
    {
        return hn::Abs(hn::Sub(a, b));
    }
    static double scalar(double a, double b) { return std::fabs(a - b); }
};

// The accumulators of one sum.
template <class Term>
struct Sum {
    hn::Vec<Doubles> sums[kVectors];

    HWY_INLINE Sum()
    {
        for (auto& sum : sums) sum = hn::Zero(Doubles());
    }

    // Add the terms of the next kAccumulators elements.
    template <class A, class B>
    HWY_INLINE void add(const A* a, const B* b)
    {
        for (std::size_t v = 0; v < kVectors; ++v) {
            sums[v] = hn::Add(sums[v], Term::term(load(a + v * kLanes), load(b + v * kLanes)));
        }
    }

    // Add the elements beyond the last whole step, then sum the accumulators pairwise.
    template <class A, class B>
    HWY_INLINE double total(const A* a, const B* b, std::size_t rest) const
    {
        HWY_ALIGN double parts[kAccumulators];
        for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], Doubles(), parts + v * kLanes);
        for (std::size_t i = 0; i < rest; ++i) parts[i] += Term::scalar(load_one(a[i]), load_one(b[i]));
        return ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    }
};

// Sum Term over all elements in the fixed order.
template <class Term, class A, class B>
double accumulate(const A* a, const B* b, std::size_t dimensions)
{
    Sum<Term> sum;
    std::size_t i = 0;
    for (; i + kAccumulators <= dimensions; i += kAccumulators) sum.add(a + i, b + i);
    return sum.total(a + i, b + i, dimensions - i);
}

// The three dot products of a cosine in one pass: a.b, a.a and b.b, each with the same bits as dot().
template <class A, class B>
void dots(const A* a, const B* b, std::size_t dimensions, double* result)
{
    Sum<Product> ab;
    Sum<Product> aa;
    Sum<Product> bb;
    std::size_t i = 0;
    for (; i + kAccumulators <= dimensions; i += kAccumulators) {
        ab.add(a + i, b + i);
        aa.add(a + i, a + i);
        bb.add(b + i, b + i);
    }
    const std::size_t rest = dimensions - i;
    result[0] = ab.total(a + i, b + i, rest);
    result[1] = aa.total(a + i, a + i, rest);
    result[2] = bb.total(b + i, b + i, rest);
}

template <class A, class B>
HWY_INLINE double sum(SumKind kind, const A* a, const B* b, std::size_t dimensions)
{
    switch (kind) {
        case SumKind::l2_squared:
            return accumulate<SquaredDifference>(a, b, dimensions);
        case SumKind::dot:
            return accumulate<Product>(a, b, dimensions);
        case SumKind::l1:
            return accumulate<AbsoluteDifference>(a, b, dimensions);
    }
    return 0;
}

// Entry points of one target: dispatch needs functions that are no templates.
double sum_floats(SumKind kind, const float* a, const float* b, std::size_t dimensions)
{
    return sum(kind, a, b, dimensions);
}
double sum_halves(SumKind kind, const half_bits* a, const half_bits* b, std::size_t dimensions)
{
    return sum(kind, a, b, dimensions);
}
double sum_mixed(SumKind kind, const float* a, const half_bits* b, std::size_t dimensions)
{
    return sum(kind, a, b, dimensions);
}
void dots_floats(const float* a, const float* b, std::size_t dimensions, double* result)
{
    dots(a, b, dimensions, result);
}
void dots_halves(const half_bits* a, const half_bits* b, std::size_t dimensions, double* result)
{
    dots(a, b, dimensions, result);
}
void dots_mixed(const float* a, const half_bits* b, std::size_t dimensions, double* result)
{
    dots(a, b, dimensions, result);
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_halves);
HWY_EXPORT(sum_mixed);
HWY_EXPORT(dots_floats);
HWY_EXPORT(dots_halves);
HWY_EXPORT(dots_mixed);

namespace
{

double sum(SumKind kind, const float* a, const float* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(sum_floats)(kind, a, b, dimensions);
}
double sum(SumKind kind, const half_bits* a, const half_bits* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(sum_halves)(kind, a, b, dimensions);
}
double sum(SumKind kind, const float* a, const half_bits* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(sum_mixed)(kind, a, b, dimensions);
}
void dots(const float* a, const float* b, std::size_t dimensions, double* result)
{
    HWY_DYNAMIC_DISPATCH(dots_floats)(a, b, dimensions, result);
}
void dots(const half_bits* a, const half_bits* b, std::size_t dimensions, double* result)
{
    HWY_DYNAMIC_DISPATCH(dots_halves)(a, b, dimensions, result);
}
void dots(const float* a, const half_bits* b, std::size_t dimensions, double* result)
{
    HWY_DYNAMIC_DISPATCH(dots_mixed)(a, b, dimensions, result);
}

// The cosine is clamped into [-1, 1], because rounding may put it just outside.
template <class A, class B>
double cosine_distance(const A* a, const B* b, std::size_t dimensions)
{
    double products[3];
    dots(a, b, dimensions, products);
    const double similarity = products[0] / std::sqrt(products[1] * products[2]);
    if (similarity > 1) return 0;
    if (similarity < -1) return 2;
    return 1 - similarity;
}

template <class A, class B>
double distance(Metric metric, const A* a, const B* b, std::size_t dimensions)
{
    switch (metric) {
        case Metric::l2:
            return std::sqrt(sum(SumKind::l2_squared, a, b, dimensions));
        case Metric::inner_product:
            return -sum(SumKind::dot, a, b, dimensions);
        case Metric::cosine:
            return cosine_distance(a, b, dimensions);
        case Metric::l1:
            return sum(SumKind::l1, a, b, dimensions);
        case Metric::hamming:
        case Metric::jaccard:
        case Metric::edit:
        case Metric::edit_transpositions:
        case Metric::edit_substring:
        case Metric::gram_jaccard:
        case Metric::overlap:
        case Metric::set_jaccard:
        case Metric::bm25:
            break;
    }
    return 0;
}

}  // namespace

double canonical_l2_squared(const float* a, const float* b, std::size_t dimensions)
{
    return sum(SumKind::l2_squared, a, b, dimensions);
}
double canonical_l2_squared(const half_bits* a, const half_bits* b, std::size_t dimensions)
{
    return sum(SumKind::l2_squared, a, b, dimensions);
}

double canonical_dot(const float* a, const float* b, std::size_t dimensions)
{
    return sum(SumKind::dot, a, b, dimensions);
}
double canonical_dot(const half_bits* a, const half_bits* b, std::size_t dimensions)
{
    return sum(SumKind::dot, a, b, dimensions);
}

double canonical_l1(const float* a, const float* b, std::size_t dimensions)
{
    return sum(SumKind::l1, a, b, dimensions);
}

double canonical_norm(const float* a, std::size_t dimensions)
{
    return std::sqrt(canonical_dot(a, a, dimensions));
}
double canonical_norm(const half_bits* a, std::size_t dimensions)
{
    return std::sqrt(canonical_dot(a, a, dimensions));
}

double canonical_distance(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    if (is_of_bits(metric)) return bit_distance(metric, a, b, dimensions * sizeof(float));
    return distance(metric, a, b, dimensions);
}
double canonical_distance(Metric metric, const half_bits* a, const half_bits* b, std::size_t dimensions)
{
    return distance(metric, a, b, dimensions);
}
double canonical_distance(Metric metric, const float* a, const half_bits* b, std::size_t dimensions)
{
    return distance(metric, a, b, dimensions);
}

}  // namespace pgwarp
#endif
