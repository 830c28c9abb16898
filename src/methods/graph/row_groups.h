// Groups of near rows of a space (k-means lists). Neighbours of a row are looked for in the groups near its own, and
// the row nearest each centroid is a seed of searches.
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

// Makes `wanted` groups, some of which may be empty, of all rows but those of `left_out`. The result does not depend on
// the number of threads.
RowGroups group_rows(const GraphSpace& space, std::size_t wanted, RowBitmap left_out, const BuildProgress& progress,
                     ThreadPool& pool);

// Returns the row nearest the centroid of each group that is not empty, in random order, so that each prefix is spread
// like the whole.
std::vector<std::uint32_t> central_rows(const GraphSpace& space, const RowGroups& groups, ThreadPool& pool);

}  // namespace pgwarp
