// Which rows a method compares by which metric: lists that several descriptions have, and answers by a description.
#pragma once

#include <algorithm>

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
// Vectors, by the metrics that follow from inner products.
inline constexpr Comparison product_comparisons[] = {
    {ElementType::float32, Metric::l2},
    {ElementType::float32, Metric::inner_product},
    {ElementType::float32, Metric::cosine},
    {ElementType::float16, Metric::l2},
    {ElementType::float16, Metric::inner_product},
    {ElementType::float16, Metric::cosine},
};

// Whether the method compares rows of these elements by this metric.
inline bool compares(const MethodDescription& method, ElementType element, Metric metric)
{
    return std::any_of(method.comparisons.begin(), method.comparisons.end(),
                       [=](const Comparison& known) { return known.element == element && known.metric == metric; });
}

}  // namespace pgwarp
