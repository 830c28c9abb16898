// Rows of a space in groups of near ones (k-means lists): what is near a row is looked for in the groups near its own,
// and each group lends the searches a row to begin from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/graph/space.h"
#include "methods/method.h"

namespace pgwarp
{

struct RowGroups {
    std::size_t dimensions = 0;
    std::vector<float> centroids;      // [count()][dimensions]
    std::vector<std::uint32_t> rows;   // those of the first group, then of the second, ..., each in growing order
    std::vector<std::uint32_t> begin;  // [count() + 1]: where in `rows` each group begins

    std::size_t count() const { return begin.empty() ? 0 : begin.size() - 1; }
    std::span<const std::uint32_t> of(std::size_t group) const
    {
        return std::span(rows).subspan(begin[group], begin[group + 1] - begin[group]);
    }
    const float* centroid(std::size_t group) const { return centroids.data() + group * dimensions; }
};

// About `wanted` groups of all rows but those left out. The same whatever the number of threads.
RowGroups group_rows(const GraphSpace& space, std::size_t wanted, RowBitmap left_out, const BuildProgress& progress,
                     ThreadPool& pool);

// Of each group that is not empty the row nearest its centroid, in an order drawn by lot, so that each prefix is spread
// like the whole.
std::vector<std::uint32_t> central_rows(const GraphSpace& space, const RowGroups& groups, ThreadPool& pool);

}  // namespace pgwarp
