#include "index/graph/space.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pgwarp
{

GraphSpace::GraphSpace(Metric metric, std::span<const float> rows, std::size_t dimensions, ThreadPool& pool)
    : metric_(metric == Metric::l1 ? Metric::l1 : Metric::l2), dimensions_(dimensions), rows_(rows)
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
