// The space in which the rows of a graph are compared with each other.
//
// Rows of l2 and l1 are compared as they are; so are rows of a cosine index, which are unit vectors, by L2. An inner
// product is no metric of a space: a row gets one coordinate more, sqrt(M^2 - |row|^2) with M the largest norm, so that
// all rows lie on a sphere on which L2 ranks like the product with any query (whose own such coordinate is 0). Edges
// are drawn in this space; searches compare by the product. Rows of bits are compared by their metric.
#pragma once

#include <cstddef>
#include <span>

#include "methods/bulk_memory.h"
#include "numeric/metric.h"
#include "numeric/parallel.h"

namespace pgwarp
{

class GraphSpace
{
public:
    // rows [count][dimensions] outlive the space.
    GraphSpace(Metric metric, std::span<const float> rows, std::size_t dimensions, ThreadPool& pool);

    Metric metric() const { return metric_; }  // l2, l1, or one of bits
    // The metric of grouping. Groups of floats are around means.
    Metric grouping() const { return has_bits() ? metric_ : Metric::l2; }
    bool has_bits() const { return is_of_bits(metric_); }
    std::size_t dimensions() const { return dimensions_; }
    std::size_t count() const { return rows_.size() / dimensions_; }
    std::span<const float> rows() const { return rows_; }
    const float* row(std::size_t i) const { return rows_.data() + i * dimensions_; }

private:
    Metric metric_;
    std::size_t dimensions_;
    std::span<const float> rows_;
    BulkVector<float> raised_;  // rows with the additional coordinate, for inner product
};

}  // namespace pgwarp
