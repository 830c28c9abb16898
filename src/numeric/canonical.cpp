// Canonical distances: eight float64 accumulators, element i always into accumulator i % 8, summed pairwise at the end.
// Every target keeps that structure and none uses fused multiply-add, so all give the same bits.
#include <cmath>

#include "numeric/metric.h"

// Sizeless vectors can't be kept in arrays; NEON serves these processors too.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/canonical.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kAccumulators = 8;
using Doubles = hn::CappedTag<double, kAccumulators>;
using Floats = hn::Rebind<float, Doubles>;
constexpr std::size_t kLanes = hn::MaxLanes(Doubles());
constexpr std::size_t kVectors = kAccumulators / kLanes;

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

    // Add the terms of kAccumulators elements.
    HWY_INLINE void add(const float* a, const float* b)
    {
        for (std::size_t v = 0; v < kVectors; ++v) {
            const auto left = hn::PromoteTo(Doubles(), hn::LoadU(Floats(), a + v * kLanes));
            const auto right = hn::PromoteTo(Doubles(), hn::LoadU(Floats(), b + v * kLanes));
            sums[v] = hn::Add(sums[v], Term::term(left, right));
        }
    }

    // Add the elements beyond the last whole step, then sum the accumulators pairwise.
    HWY_INLINE double total(const float* a, const float* b, std::size_t rest) const
    {
        HWY_ALIGN double parts[kAccumulators];
        for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], Doubles(), parts + v * kLanes);
        for (std::size_t i = 0; i < rest; ++i) parts[i] += Term::scalar(a[i], b[i]);
        return ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    }
};

// Sum Term over all elements in the fixed order.
template <class Term>
double accumulate(const float* a, const float* b, std::size_t dimensions)
{
    Sum<Term> sum;
    std::size_t i = 0;
    for (; i + kAccumulators <= dimensions; i += kAccumulators) sum.add(a + i, b + i);
    return sum.total(a + i, b + i, dimensions - i);
}

// What a cosine needs, in one pass: a.b, a.a and b.b, each with the bits that dot() gives.
void dots(const float* a, const float* b, std::size_t dimensions, double* result)
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

double l2_squared(const float* a, const float* b, std::size_t dimensions)
{
    return accumulate<SquaredDifference>(a, b, dimensions);
}
double dot(const float* a, const float* b, std::size_t dimensions)
{
    return accumulate<Product>(a, b, dimensions);
}
double l1(const float* a, const float* b, std::size_t dimensions)
{
    return accumulate<AbsoluteDifference>(a, b, dimensions);
}

}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(l2_squared);
HWY_EXPORT(dot);
HWY_EXPORT(l1);
HWY_EXPORT(dots);

double canonical_l2_squared(const float* a, const float* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(l2_squared)(a, b, dimensions);
}

double canonical_dot(const float* a, const float* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(dot)(a, b, dimensions);
}

double canonical_l1(const float* a, const float* b, std::size_t dimensions)
{
    return HWY_DYNAMIC_DISPATCH(l1)(a, b, dimensions);
}

double canonical_norm(const float* a, std::size_t dimensions)
{
    return std::sqrt(canonical_dot(a, a, dimensions));
}

// Clamp the cosine into [-1, 1], as rounding may leave it just outside.
static double cosine_distance(const float* a, const float* b, std::size_t dimensions)
{
    double products[3];
    HWY_DYNAMIC_DISPATCH(dots)(a, b, dimensions, products);
    const double similarity = products[0] / std::sqrt(products[1] * products[2]);
    if (similarity > 1) return 0;
    if (similarity < -1) return 2;
    return 1 - similarity;
}

double canonical_distance(Metric metric, const float* a, const float* b, std::size_t dimensions)
{
    switch (metric) {
        case Metric::l2:
            return std::sqrt(canonical_l2_squared(a, b, dimensions));
        case Metric::inner_product:
            return -canonical_dot(a, b, dimensions);
        case Metric::cosine:
            return cosine_distance(a, b, dimensions);
        case Metric::l1:
            return canonical_l1(a, b, dimensions);
    }
    return 0;
}

}  // namespace pgwarp
#endif
