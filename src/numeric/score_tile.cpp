// Tiles of scores by a blocked matrix product. Rows are transposed into a panel that stays in the first-level cache;
// queries are packed so that a step reads consecutive values; the sums of a group of queries times a panel stay in
// registers. Every sum runs over the dimensions in order, so a score does not depend on the tile's shape, except with
// few queries, which are scored row by row.
#include <algorithm>
#include <cstring>
#include <memory>

#include "numeric/distance.h"

// Sizeless vectors cannot be array elements; processors with SVE run the NEON target.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/score_tile.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef PGWARP_NUMERIC_SCORE_TILE_ONCE
#define PGWARP_NUMERIC_SCORE_TILE_ONCE
namespace pgwarp::tile
{

// The product that a tile computes: factor * query.row, plus the row's norm if there are norms.
struct Product {
    const float* queries;
    std::size_t query_count;
    const float* rows;
    const std::uint32_t* ids;  // numbers of the rows; null: the first row_count
    const float* row_norms;    // null: none
    std::size_t row_count;
    std::size_t dimensions;
    float factor;
    float* out;
};

constexpr std::size_t depth = 256;        // dimensions a panel holds
constexpr std::size_t query_block = 192;  // queries packed at once: with `depth`, a part of the second-level cache
constexpr std::size_t most_group = 12;    // queries in registers at once, at most
constexpr std::size_t most_panel = 32;    // rows in a panel, at most

struct Buffers {
    alignas(64) float queries[(query_block + most_group) * depth];
    alignas(64) float panel[most_panel * depth];
    alignas(64) float spill[most_group * most_panel];  // results of a panel with fewer rows than panel_rows
};

}  // namespace pgwarp::tile
#endif

HWY_BEFORE_NAMESPACE();
namespace pgwarp::HWY_NAMESPACE
{
namespace hn = hwy::HWY_NAMESPACE;
namespace
{

using tile::Buffers;
using tile::Product;
using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr std::size_t lane_count = hn::MaxLanes(Floats());
constexpr std::size_t panel_rows = 2 * lane_count;
// Two vectors of sums per query, two of rows and one broadcast value must fit in 32 or 16 registers.
constexpr std::size_t group_queries = HWY_CAP_GE512 || HWY_TARGET == HWY_NEON ? 12 : 6;
static_assert(group_queries <= tile::most_group && panel_rows <= tile::most_panel);

// The present block of dimensions.
struct Slice {
    std::size_t begin;
    std::size_t count;
    bool first;
    bool last;
};

#if HWY_TARGET == HWY_SCALAR
using Block = Floats;
constexpr std::size_t square = 1;
template <class D>
HWY_INLINE void transpose(D, const float* const* rows, std::size_t i, float* out, std::size_t)
{
    *out = rows[0][i];
}
#else
using Block = hn::CappedTag<float, 4>;
constexpr std::size_t square = 4;
// Load four dimensions, from i on, of every fourth row.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D floats, const float* const* rows, std::size_t i)
{
    if constexpr (hn::MaxLanes(floats) <= square) {
        return hn::LoadU(floats, rows[0] + i);
    } else {
        const hn::Half<D> half;
        return hn::Combine(floats, load_blocks(half, rows + hn::MaxLanes(half), i), load_blocks(half, rows, i));
    }
}

// Transpose four dimensions, from i on, of one row per lane, into lines of `out` that are `stride` floats apart.
template <class D>
HWY_INLINE void transpose(D floats, const float* const* rows, std::size_t i, float* out, std::size_t stride)
{
    const hn::RepartitionToWide<D> pairs;
    const auto row0 = load_blocks(floats, rows, i);
    const auto row1 = load_blocks(floats, rows + 1, i);
    const auto row2 = load_blocks(floats, rows + 2, i);
    const auto row3 = load_blocks(floats, rows + 3, i);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(floats, row0, row1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(floats, row2, row3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(floats, row0, row1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(floats, row2, row3));
    hn::StoreU(hn::BitCast(floats, hn::InterleaveLower(pairs, low01, low23)), floats, out);
    hn::StoreU(hn::BitCast(floats, hn::InterleaveUpper(pairs, low01, low23)), floats, out + stride);
    hn::StoreU(hn::BitCast(floats, hn::InterleaveLower(pairs, high01, high23)), floats, out + 2 * stride);
    hn::StoreU(hn::BitCast(floats, hn::InterleaveUpper(pairs, high01, high23)), floats, out + 3 * stride);
}
#endif

// Transpose `count` dimensions of one row per lane.
template <class D>
HWY_INLINE void transpose_rows(D floats, const float* const* rows, std::size_t count, float* out, std::size_t stride)
{
    std::size_t i = 0;
    for (; i + square <= count; i += square) transpose(floats, rows, i, out + i * stride, stride);
    for (; i < count; ++i) {
        for (std::size_t r = 0; r < hn::MaxLanes(floats); ++r) out[i * stride + r] = rows[r][i];
    }
}

// Transpose a slice of up to panel_rows rows; missing rows repeat the last one.
void pack_panel(const Product& product, std::size_t first_row, const Slice& slice, float* panel)
{
    const std::size_t last = product.row_count - 1;
    const float* rows[panel_rows];
    for (std::size_t r = 0; r < panel_rows; ++r) {
        const std::size_t at = std::min(first_row + r, last);
        const std::size_t row = product.ids != nullptr ? product.ids[at] : at;
        rows[r] = product.rows + row * product.dimensions + slice.begin;
    }
    for (std::size_t r = 0; r < panel_rows; r += lane_count)
        transpose_rows(Floats(), rows + r, slice.count, panel + r, panel_rows);
}

// Multiply `group` packed queries with the panel; out has one line of panel_rows results (or partial sums) for each
// query.
template <std::size_t group>
void multiply(const float* HWY_RESTRICT queries, const float* HWY_RESTRICT panel, const float* norms, float factor,
              const Slice& slice, float* out, std::size_t out_stride)
{
    const Floats floats;
    Vector low[group];
    Vector high[group];
    for (std::size_t q = 0; q < group; ++q) {
        low[q] = slice.first ? hn::Zero(floats) : hn::LoadU(floats, out + q * out_stride);
        high[q] = slice.first ? hn::Zero(floats) : hn::LoadU(floats, out + q * out_stride + lane_count);
    }
    for (std::size_t i = 0; i < slice.count; ++i) {
        const Vector row_low = hn::Load(floats, panel);
        const Vector row_high = hn::Load(floats, panel + lane_count);
        for (std::size_t q = 0; q < group; ++q) {
            const Vector query = hn::Set(floats, queries[q]);
            low[q] = hn::MulAdd(query, row_low, low[q]);
            high[q] = hn::MulAdd(query, row_high, high[q]);
        }
        queries += group;
        panel += panel_rows;
    }
    if (slice.last) {
        const Vector scale = hn::Set(floats, factor);
        const Vector norm_low = norms == nullptr ? hn::Zero(floats) : hn::LoadU(floats, norms);
        const Vector norm_high = norms == nullptr ? hn::Zero(floats) : hn::LoadU(floats, norms + lane_count);
        for (std::size_t q = 0; q < group; ++q) {
            low[q] = hn::MulAdd(low[q], scale, norm_low);
            high[q] = hn::MulAdd(high[q], scale, norm_high);
        }
    }
    for (std::size_t q = 0; q < group; ++q) {
        hn::StoreU(low[q], floats, out + q * out_stride);
        hn::StoreU(high[q], floats, out + q * out_stride + lane_count);
    }
}

// Returns the largest of the compiled group sizes that is at most `queries`.
HWY_INLINE std::size_t group_size(std::size_t queries)
{
    for (const std::size_t size : {std::size_t{12}, std::size_t{6}, std::size_t{4}, std::size_t{2}}) {
        if (size <= group_queries && size <= queries) return size;
    }
    return 1;
}

HWY_INLINE void multiply_group(std::size_t group, const float* queries, const float* panel, const float* norms,
                               float factor, const Slice& slice, float* out, std::size_t out_stride)
{
    switch (group) {
#if HWY_CAP_GE512 || HWY_TARGET == HWY_NEON
        case 12:
            return multiply<12>(queries, panel, norms, factor, slice, out, out_stride);
#endif
        case 6:
            return multiply<6>(queries, panel, norms, factor, slice, out, out_stride);
        case 4:
            return multiply<4>(queries, panel, norms, factor, slice, out, out_stride);
        case 2:
            return multiply<2>(queries, panel, norms, factor, slice, out, out_stride);
        default:
            return multiply<1>(queries, panel, norms, factor, slice, out, out_stride);
    }
}

// Interleave a slice of the queries, a group at a time, in the order in which multiply() reads it.
void pack_queries(const Product& product, std::size_t first, std::size_t count, const Slice& slice, float* packed)
{
    for (std::size_t q = 0; q < count;) {
        const std::size_t group = group_size(count - q);
        const float* queries[tile::most_group];
        for (std::size_t g = 0; g < group; ++g)
            queries[g] = product.queries + (first + q + g) * product.dimensions + slice.begin;
        std::size_t g = 0;
        for (; g + square <= group; g += square) transpose_rows(Block(), queries + g, slice.count, packed + g, group);
        for (; g < group; ++g) {
            for (std::size_t i = 0; i < slice.count; ++i) packed[i * group + g] = queries[g][i];
        }
        packed += group * slice.count;
        q += group;
    }
}

// Multiply packed queries with a panel of fewer than panel_rows rows, through a full-width buffer.
void multiply_narrow(const Product& product, std::size_t group, const float* queries, std::size_t first_row,
                     const Slice& slice, float* out, Buffers& buffers)
{
    const std::size_t width = product.row_count - first_row;
    float norms[panel_rows] = {};
    if (product.row_norms != nullptr) std::copy_n(product.row_norms + first_row, width, norms);
    for (std::size_t g = 0; g < group && !slice.first; ++g) {
        std::copy_n(out + g * product.row_count, width, buffers.spill + g * panel_rows);
    }
    multiply_group(group, queries, buffers.panel, norms, product.factor, slice, buffers.spill, panel_rows);
    for (std::size_t g = 0; g < group; ++g) {
        std::copy_n(buffers.spill + g * panel_rows, width, out + g * product.row_count);
    }
}

// Prefetch rows of the panel that begins at `first_row`, if rows are gathered. Each group of queries prefetches its
// share of the rows, so that prefetching overlaps with the multiplication.
HWY_INLINE void prefetch_panel(const Product& product, std::size_t first_row, std::size_t query, std::size_t group,
                               std::size_t query_count, const Slice& slice)
{
    constexpr std::size_t line = 64 / sizeof(float);
    if (product.ids == nullptr) return;
    const std::size_t end = std::min(product.row_count, first_row + panel_rows * (query + group) / query_count);
    for (std::size_t at = first_row + panel_rows * query / query_count; at < end; ++at) {
        const float* row = product.rows + product.ids[at] * product.dimensions + slice.begin;
        for (std::size_t i = 0; i < slice.count; i += line) __builtin_prefetch(row + i);
    }
}

// Multiply a block of queries with all rows over one slice of the dimensions.
void multiply_slice(const Product& product, std::size_t first_query, std::size_t query_count, const Slice& slice,
                    Buffers& buffers)
{
    pack_queries(product, first_query, query_count, slice, buffers.queries);
    for (std::size_t row = 0; row < product.row_count; row += panel_rows) {
        pack_panel(product, row, slice, buffers.panel);
        const float* norms = product.row_norms == nullptr ? nullptr : product.row_norms + row;
        const float* queries = buffers.queries;
        for (std::size_t q = 0; q < query_count;) {
            const std::size_t group = group_size(query_count - q);
            float* out = product.out + (first_query + q) * product.row_count + row;
            prefetch_panel(product, row + panel_rows, q, group, query_count, slice);
            if (row + panel_rows <= product.row_count) {
                multiply_group(group, queries, buffers.panel, norms, product.factor, slice, out, product.row_count);
            } else {
                multiply_narrow(product, group, queries, row, slice, out, buffers);
            }
            queries += group * slice.count;
            q += group;
        }
    }
}

// Compute the tile, a block of queries at a time, over slices of nearly equal size.
void multiply_tile(const Product& product, Buffers& buffers)
{
    const std::size_t slices = (product.dimensions + tile::depth - 1) / tile::depth;
    for (std::size_t query = 0; query < product.query_count; query += tile::query_block) {
        const std::size_t query_count = std::min(tile::query_block, product.query_count - query);
        for (std::size_t s = 0; s < slices; ++s) {
            const std::size_t begin = product.dimensions * s / slices;
            const std::size_t end = product.dimensions * (s + 1) / slices;
            multiply_slice(product, query, query_count, {begin, end - begin, s == 0, s + 1 == slices}, buffers);
        }
    }
}

}  // namespace
}  // namespace pgwarp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pgwarp
{

HWY_EXPORT(multiply_tile);

namespace
{

// With fewer queries, transposing rows costs more than it saves.
constexpr std::size_t fewest_queries = 6;

// Score rows one query at a time, in blocks of rows that stay in the first-level cache for the next query.
void score_by_query(Metric metric, const float* queries, std::size_t query_count, const float* rows,
                    std::size_t row_count, std::size_t dimensions, float* out)
{
    constexpr std::size_t block_floats = 4096;
    const std::size_t block = std::max<std::size_t>(4, block_floats / dimensions / 4 * 4);
    for (std::size_t row = 0; row < row_count; row += block) {
        const std::size_t count = std::min(block, row_count - row);
        for (std::size_t q = 0; q < query_count; ++q) {
            scores(metric, queries + q * dimensions, rows + row * dimensions, count, dimensions,
                   out + q * row_count + row);
        }
    }
}

// Turn negative products into |row|^2 - 2 query.row.
void add_norms(const float* row_norms, std::size_t query_count, std::size_t row_count, float* out)
{
    for (std::size_t q = 0; q < query_count; ++q) {
        float* line = out + q * row_count;
        for (std::size_t r = 0; r < row_count; ++r) line[r] = row_norms[r] + 2.0F * line[r];
    }
}

tile::Buffers& tile_buffers()
{
    static thread_local std::unique_ptr<tile::Buffers> buffers;
    if (!buffers) buffers = std::make_unique_for_overwrite<tile::Buffers>();
    return *buffers;
}

}  // namespace

void score_tile(Metric metric, const float* queries, std::size_t query_count, const float* rows, const float* row_norms,
                std::size_t row_count, std::size_t dimensions, float* out)
{
    if (query_count == 0 || row_count == 0) return;
    if (metric == Metric::l1 || is_of_bits(metric))
        return score_by_query(metric, queries, query_count, rows, row_count, dimensions, out);
    const bool l2 = metric == Metric::l2;
    if (query_count < fewest_queries) {
        score_by_query(Metric::inner_product, queries, query_count, rows, row_count, dimensions, out);
        if (l2) add_norms(row_norms, query_count, row_count, out);
        return;
    }
    const tile::Product product{queries,    query_count,        rows, nullptr, l2 ? row_norms : nullptr, row_count,
                                dimensions, l2 ? -2.0F : -1.0F, out};
    HWY_DYNAMIC_DISPATCH(multiply_tile)(product, tile_buffers());
}

void score_tile_gather(Metric metric, const float* queries, std::size_t query_count, const float* rows,
                       const std::uint32_t* ids, const float* row_norms, std::size_t row_count, std::size_t dimensions,
                       float* out)
{
    if (query_count == 0 || row_count == 0) return;
    const bool l2 = metric == Metric::l2;
    if (metric == Metric::l1 || is_of_bits(metric) || query_count < fewest_queries) {
        const Metric scored = l2 ? Metric::inner_product : metric;
        for (std::size_t q = 0; q < query_count; ++q)
            scores_gather(scored, queries + q * dimensions, rows, ids, row_count, dimensions, out + q * row_count);
        if (l2) add_norms(row_norms, query_count, row_count, out);
        return;
    }
    const tile::Product product{queries,    query_count,        rows, ids, l2 ? row_norms : nullptr, row_count,
                                dimensions, l2 ? -2.0F : -1.0F, out};
    HWY_DYNAMIC_DISPATCH(multiply_tile)(product, tile_buffers());
}

}  // namespace pgwarp
#endif
