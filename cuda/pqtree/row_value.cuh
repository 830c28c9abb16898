// The value of a position for a query, by the best form of its row, with the bits of the CPU
// (methods/rows/stored_vectors.h).
#pragma once

#include <cstdint>

#include "pqtree/view.h"
#include "rows/values.cuh"

namespace pgwarp::cuda::pqtree
{

// The tables that decode line codes: the centroids of the first level, and room for the lines of a row.
struct DecodeSpace {
    const float* centroids;  // [dimensions][stride], in shared memory where there is room
    std::uint32_t stride;
    float2* lines;  // [line_parts] of each group of 8 lanes: lambda, and the two centroids as bits
};

// Of rows kept only as line codes: the distance to the point that the code stands for.
__device__ inline double code_value(const MirrorView& mirror, const DecodeSpace& space, const float* query,
                                    std::uint32_t position)
{
    const TreeView& tree = mirror.tree;
    const auto* code = reinterpret_cast<const std::uint8_t*>(mirror.lists.codes +
                                                             std::size_t{position} * code_groups(tree.line_parts));
    float2* lines = space.lines + threadIdx.x / 8 * tree.line_parts;
    __syncwarp();
    for (std::uint32_t part = threadIdx.x % 8; part < tree.line_parts; part += 8) {
        const std::uint8_t* at = code + line_offset(part);
        const LineConstants line = tree.constants[part * tree.lines + at[0]];
        const float lambda = __fadd_rn(line.first, __fmul_rn(line.step, static_cast<float>(at[group_parts])));
        lines[part] = make_float2(lambda, __uint_as_float(line.ends));
    }
    __syncwarp();
    const auto given = [&](std::uint32_t d) { return query[d]; };
    const auto decoded = [&](std::uint32_t d) {
        const float2 line = lines[tree.part_of[d]];
        const std::uint32_t ends = __float_as_uint(line.y);
        const float* centroids = space.centroids + std::size_t{d} * space.stride;
        const float from = centroids[ends & 0xffffU];
        return __fadd_rn(from, __fmul_rn(line.x, __fsub_rn(centroids[ends >> 16], from)));
    };
    if (mirror.metric == Metric::l2)
        return __dsqrt_rn(rows::canonical_l2_squared_of(given, decoded, mirror.dimensions));
    const double negative = -rows::canonical_dot_of(given, decoded, mirror.dimensions);
    return mirror.metric == Metric::cosine ? __dadd_rn(negative, 1) : negative;
}

// Every group of 8 lanes has its own position; all 32 lanes must call. norm: canonical, of the query.
__device__ inline double row_value(const MirrorView& mirror, const DecodeSpace& space, const float* query, double norm,
                                   std::uint32_t position)
{
    if (mirror.full != nullptr) return rows::full_value(mirror, query, mirror.row_at[position]);
    if (mirror.half.rows != nullptr) return rows::half_value(mirror, query, norm, position);
    if (mirror.remote.full != nullptr) return rows::remote_full_value(mirror, query, mirror.row_at[position]);
    if (mirror.remote.halves != nullptr) {
        return rows::remote_half_value(mirror, query, norm, mirror.row_at[position]);
    }
    return code_value(mirror, space, query, position);
}

}  // namespace pgwarp::cuda::pqtree
