// Rows of an inner product get the coordinate that puts them on a sphere.
#include "methods/graph/space.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pgwarp
{

namespace
{

Metric metric_of_space(Metric metric)
{
    return metric == Metric::l1 || is_of_bits(metric) ? metric : Metric::l2;
}

}  // namespace

GraphSpace::GraphSpace(Metric metric, std::span<const float> rows, std::size_t dimensions, ThreadPool& pool)
    : metric_(metric_of_space(metric)), dimensions_(dimensions), rows_(rows)
{
    if (metric != Metric::inner_product) return;
    const std::size_t count = rows.size() / dimensions;
    std::vector<double> norms(count);
    pool.parallel_for(count, 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) norms[i] = canonical_norm(rows.data() + i * dimensions, dimensions);
    });
    const double largest = count > 0 ? *std::max_element(norms.begin(), norms.end()) : 0;
    dimensions_ = dimensions + 1;
    raised_.resize(count * dimensions_);
    pool.parallel_for(count, 4096, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            float* raised = raised_.data() + i * dimensions_;
            std::copy_n(rows.data() + i * dimensions, dimensions, raised);
            raised[dimensions] = static_cast<float>(std::sqrt((largest - norms[i]) * (largest + norms[i])));
        }
    });
    rows_ = raised_;
}

}  // namespace pgwarp
