// A query's terms of all lines, by a whole block (Wieschollek et al., section 3.3, equation 9): from the scores of the
// centroids of the first level in each line part, which are also the first step of the descent.
#pragma once

#include <cfloat>
#include <cstdint>

#include "pqtree/block.cuh"
#include "pqtree/view.h"

namespace pgwarp::cuda::pqtree
{

// A term is a base in the lower and a slope in the upper 16 bits of a word. The score of a row is
// unit * (sum of base * place_steps + slope * place) + its bias + shift; no sum exceeds 31 bits.
struct TermScale {
    float unit;
    float shift;
};

inline constexpr int place_steps = 255;
inline constexpr float largest_term = 32767;
inline constexpr float largest_sum = 1U << 30;

namespace detail
{

// The range of a line part's terms.
struct TermRange {
    float middle;    // of the bases
    float reach;     // from the middle
    float steepest;  // slope, by magnitude
};

// out[line_part - first][padded_level1] = the scores of the centroids of the first level.
template <int Threads>
__device__ void score_line_parts(const TreeView& tree, const float* query, std::uint32_t first, std::uint32_t last,
                                 float* out)
{
    const std::uint32_t quads = tree.padded_level1 / 4;
    for (std::uint32_t unit = threadIdx.x; unit < (last - first) * quads; unit += Threads) {
        const LineSpan span = tree.spans[first + unit / quads];
        const float4* column =
            reinterpret_cast<const float4*>(tree.level1 + std::size_t{span.first} * tree.padded_level1) + unit % quads;
        float4 sum{0, 0, 0, 0};
#pragma unroll 8
        for (std::uint32_t d = 0; d < span.width; ++d) {
            const float x = query[span.padded + d];
            const float4 c = column[d * quads];
            if (tree.squared) {
                sum.x += (x - c.x) * (x - c.x);
                sum.y += (x - c.y) * (x - c.y);
                sum.z += (x - c.z) * (x - c.z);
                sum.w += (x - c.w) * (x - c.w);
            } else {
                sum.x -= x * c.x;
                sum.y -= x * c.y;
                sum.z -= x * c.z;
                sum.w -= x * c.w;
            }
        }
        reinterpret_cast<float4*>(out)[unit] = sum;
    }
}

// Adds the scores of line parts [first, last) to those of the parts of the tree.
template <int Threads>
__device__ void add_part_scores(const TreeView& tree, const float* line_scores, std::uint32_t first, std::uint32_t last,
                                float* part_scores)
{
    const std::uint32_t pieces = tree.line_parts / tree.parts;
    for (std::uint32_t i = threadIdx.x; i < tree.parts * tree.padded_level1; i += Threads) {
        const std::uint32_t part = i / tree.padded_level1;
        float sum = first == 0 ? 0.0F : part_scores[i];
        for (std::uint32_t piece = max(first, part * pieces); piece < min(last, (part + 1) * pieces); ++piece)
            sum += line_scores[(piece - first) * tree.padded_level1 + i % tree.padded_level1];
        part_scores[i] = sum;
    }
}

// The term of a line (methods/pqtree/lines.h).
__device__ inline float2 term_of(const LineConstants& line, const float* scores)
{
    const float from = scores[line.ends & 0xffffU];
    const float difference = scores[line.ends >> 16] - from - line.length;
    return {from + line.first * (difference + line.first * line.length),
            line.step * (difference + 2 * line.first * line.length)};
}

// A warp finds the range of a line part.
template <int Threads>
__device__ void measure_terms(const TreeView& tree, const float* line_scores, std::uint32_t first, std::uint32_t last,
                              TermRange* ranges)
{
    for (std::uint32_t part = first + threadIdx.x / 32; part < last; part += Threads / 32) {
        float least = FLT_MAX;
        float most = -FLT_MAX;
        float steepest = 0;
#pragma unroll 4
        for (std::uint32_t line = threadIdx.x % 32; line < tree.lines; line += 32) {
            const float2 term =
                term_of(tree.constants[part * tree.lines + line], line_scores + (part - first) * tree.padded_level1);
            least = fminf(least, term.x);
            most = fmaxf(most, term.x);
            steepest = fmaxf(steepest, fabsf(term.y));
        }
        least = warp_least(least);
        most = warp_largest(most);
        steepest = warp_largest(steepest);
        if (threadIdx.x % 32 == 0) ranges[part] = {(least + most) / 2, (most - least) / 2, steepest};
    }
}

// All lanes of a warp call.
__device__ inline TermScale scale_of(const TermRange* ranges, std::uint32_t line_parts)
{
    float steepest = 0;
    float reach = 0;
    float sum = 0;
    float shift = 0;
    for (std::uint32_t part = threadIdx.x % 32; part < line_parts; part += 32) {
        const TermRange range = ranges[part];
        steepest = fmaxf(steepest, range.steepest);
        reach = fmaxf(reach, range.reach);
        sum += range.reach + place_steps * range.steepest;
        shift += range.middle;
    }
    steepest = warp_largest(steepest);
    reach = warp_largest(reach);
    sum = warp_sum(sum);
    shift = warp_sum(shift);
    const float unit = fmaxf(fmaxf(steepest / largest_term, reach / (place_steps * largest_term)), sum / largest_sum);
    return {fmaxf(unit, FLT_MIN), shift};
}

__device__ inline std::uint32_t rounded(float value)
{
    return static_cast<std::uint32_t>(__float2int_rn(fminf(fmaxf(value, -largest_term), largest_term))) & 0xffffU;
}

template <int Threads>
__device__ void round_terms(const TreeView& tree, const float* line_scores, std::uint32_t first, std::uint32_t last,
                            const TermRange* ranges, float unit, std::uint32_t* terms)
{
    const float per_slope = 1 / unit;
    const float per_base = per_slope / place_steps;
#pragma unroll 4
    for (std::uint32_t i = threadIdx.x; i < (last - first) * line_room; i += Threads) {
        const std::uint32_t part = first + i / line_room;
        const std::uint32_t line = i % line_room;
        if (line >= tree.lines) continue;
        const float2 term =
            term_of(tree.constants[part * tree.lines + line], line_scores + (part - first) * tree.padded_level1);
        terms[part * line_room + line] =
            rounded((term.x - ranges[part].middle) * per_base) | rounded(term.y * per_slope) << 16;
    }
}

}  // namespace detail

// Makes space.terms and space.part_scores from space.query. Line parts are scored in slices of the room for scores;
// where there are several, they are scored twice. All threads call; begins and ends with a barrier.
template <int Threads>
__device__ TermScale make_terms(const TreeView& tree, const BlockSpace& space, std::uint32_t line_scores)
{
    auto* ranges = reinterpret_cast<detail::TermRange*>(space.scratch);
    const std::uint32_t slice = min(tree.line_parts, line_scores / tree.padded_level1);
    for (std::uint32_t first = 0; first < tree.line_parts; first += slice) {
        const std::uint32_t last = min(first + slice, tree.line_parts);
        __syncthreads();
        detail::score_line_parts<Threads>(tree, space.query, first, last, space.line_scores);
        __syncthreads();
        detail::add_part_scores<Threads>(tree, space.line_scores, first, last, space.part_scores);
        detail::measure_terms<Threads>(tree, space.line_scores, first, last, ranges);
    }
    __syncthreads();
    const TermScale scale = detail::scale_of(ranges, tree.line_parts);
    for (std::uint32_t first = 0; first < tree.line_parts; first += slice) {
        const std::uint32_t last = min(first + slice, tree.line_parts);
        if (slice < tree.line_parts) {
            __syncthreads();
            detail::score_line_parts<Threads>(tree, space.query, first, last, space.line_scores);
            __syncthreads();
        }
        detail::round_terms<Threads>(tree, space.line_scores, first, last, ranges, scale.unit, space.terms);
    }
    const std::uint32_t padding = code_groups(tree.line_parts) * group_parts;
    for (std::uint32_t i = tree.line_parts * line_room + threadIdx.x; i < padding * line_room; i += Threads)
        space.terms[i] = 0;
    __syncthreads();
    return scale;
}

}  // namespace pgwarp::cuda::pqtree
