// The value of a position for a query, by the best form of its row, with the bits of the CPU
// (methods/rows/stored_vectors.h).
#pragma once

#include <cstdint>

#include "pqtree/view.h"
#include "rows/values.cuh"

namespace pgwarp::cuda::pqtree
{

// Of rows kept only as line codes: the distance to the point that the code stands for.
__device__ inline double code_value(const MirrorView& mirror, const float* query, std::uint32_t position)
{
    const TreeView& tree = mirror.tree;
    const auto* code = reinterpret_cast<const std::uint8_t*>(mirror.lists.codes +
                                                             std::size_t{position} * code_groups(tree.line_parts));
    const auto given = [&](std::uint32_t d) { return query[d]; };
    const auto decoded = [&](std::uint32_t d) {
        const std::uint32_t part = tree.part_of[d];
        const std::uint8_t* at = code + line_offset(part);
        const LineConstants line = tree.constants[part * tree.lines + at[0]];
        const float* centroids = tree.level1 + std::size_t{d} * tree.padded_level1;
        const float from = centroids[line.ends & 0xffffU];
        const float lambda = __fadd_rn(line.first, __fmul_rn(line.step, static_cast<float>(at[group_parts])));
        return __fadd_rn(from, __fmul_rn(lambda, __fsub_rn(centroids[line.ends >> 16], from)));
    };
    if (mirror.metric == Metric::l2)
        return __dsqrt_rn(rows::canonical_l2_squared_of(given, decoded, mirror.dimensions));
    const double negative = -rows::canonical_dot_of(given, decoded, mirror.dimensions);
    return mirror.metric == Metric::cosine ? __dadd_rn(negative, 1) : negative;
}

// Every group of 8 lanes has its own position; all 32 lanes must call. norm: canonical, of the query.
__device__ inline double row_value(const MirrorView& mirror, const float* query, double norm, std::uint32_t position)
{
    if (mirror.full != nullptr) return rows::full_value(mirror, query, mirror.row_at[position]);
    if (mirror.half.rows != nullptr) return rows::half_value(mirror, query, norm, position);
    if (mirror.remote.full != nullptr) return rows::remote_full_value(mirror, query, mirror.row_at[position]);
    if (mirror.remote.halves != nullptr) {
        return rows::remote_half_value(mirror, query, norm, mirror.row_at[position]);
    }
    return code_value(mirror, query, position);
}

}  // namespace pgwarp::cuda::pqtree
