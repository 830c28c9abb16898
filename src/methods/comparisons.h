// Which rows a method compares by which metric: lists that several descriptions have, and answers by a description.
#pragma once

#include <algorithm>
#include <array>

#include "methods/description.h"

namespace pgwarp
{

// Vectors and bits, by every metric of theirs.
inline constexpr Comparison dense_comparisons[] = {
    {ElementType::float32, Metric::l2},     {ElementType::float32, Metric::inner_product},
    {ElementType::float32, Metric::cosine}, {ElementType::float32, Metric::l1},
    {ElementType::float16, Metric::l2},     {ElementType::float16, Metric::inner_product},
    {ElementType::float16, Metric::cosine}, {ElementType::float16, Metric::l1},
    {ElementType::bit, Metric::hamming},    {ElementType::bit, Metric::jaccard},
};
inline constexpr Comparison sparse_comparisons[] = {
    {ElementType::sparse, Metric::l2},
    {ElementType::sparse, Metric::inner_product},
    {ElementType::sparse, Metric::cosine},
    {ElementType::sparse, Metric::l1},
};
// Vectors, by the metrics that follow from inner products.
inline constexpr Comparison product_comparisons[] = {
    {ElementType::float32, Metric::l2},
    {ElementType::float32, Metric::inner_product},
    {ElementType::float32, Metric::cosine},
    {ElementType::float16, Metric::l2},
    {ElementType::float16, Metric::inner_product},
    {ElementType::float16, Metric::cosine},
};

// Returns the comparisons of two lists.
template <std::size_t a_count, std::size_t b_count>
constexpr std::array<Comparison, a_count + b_count> join_comparisons(const Comparison (&a)[a_count],
                                                                     const Comparison (&b)[b_count])
{
    std::array<Comparison, a_count + b_count> joined{};
    std::copy_n(a, a_count, joined.begin());
    std::copy_n(b, b_count, joined.begin() + a_count);
    return joined;
}

// Whether the method compares rows of these elements by this metric.
inline bool compares(const MethodDescription& method, ElementType element, Metric metric)
{
    return std::any_of(method.comparisons.begin(), method.comparisons.end(),
                       [=](const Comparison& known) { return known.element == element && known.metric == metric; });
}

}  // namespace pgwarp
