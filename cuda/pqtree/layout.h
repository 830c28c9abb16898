// The layout of a product quantization tree on the device: padded queries, codes of rows, and the shared memory of the
// block that searches for a query. Free of CUDA, so that tests on the CPU cover it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "methods/pqtree/tree.h"
#include "numeric/host_device.h"

namespace pgwarp::cuda::pqtree
{

// Codes. A row has 16 bytes for each group of eight line parts: their lines, then their places. Groups are padded with
// zeros, and the terms of padding are zero. Rows lie in the order of slots, row after row: a row of 16 line parts is
// one sector of 32 bytes, and rows of a bin are neighbours.
inline constexpr std::uint32_t group_parts = 8;
inline constexpr std::uint32_t group_bytes = 16;
inline constexpr std::uint32_t line_room = 256;  // lines of a line part in the table of terms

PGWARP_HOST_DEVICE constexpr std::uint32_t code_groups(std::uint32_t line_parts)
{
    return (line_parts + group_parts - 1) / group_parts;
}

// The offset of a line in the code of a row; its place is group_parts bytes behind.
PGWARP_HOST_DEVICE constexpr std::uint32_t line_offset(std::uint32_t line_part)
{
    return line_part / group_parts * group_bytes + line_part % group_parts;
}

// Lanes that share the code of a row: a power of two, at most one for each group.
PGWARP_HOST_DEVICE constexpr std::uint32_t lanes_of_row(std::uint32_t groups)
{
    std::uint32_t lanes = 1;
    while (lanes < 8 && 2 * lanes <= groups) lanes *= 2;
    return lanes;
}

// Vectors of the tree are padded so that each part begins at a multiple of four floats.
PGWARP_HOST_DEVICE constexpr std::uint32_t padded_width(std::uint32_t width)
{
    return (width + 3) / 4 * 4;
}

// Centroids of the first level are scored four at a time.
PGWARP_HOST_DEVICE constexpr std::uint32_t padded_level1(std::uint32_t k1)
{
    return (k1 + 3) / 4 * 4;
}

PGWARP_HOST_DEVICE constexpr std::uint32_t power_of_two_above(std::uint32_t n)
{
    std::uint32_t power = 1;
    while (power < n) power *= 2;
    return power;
}

inline constexpr std::uint32_t tile_rows = 1024;         // candidates between two looks at the number of kept keys
inline constexpr std::uint32_t shared_tile_rows = 2048;  // the same where blocks share the candidates of a query
inline constexpr std::uint32_t fewest_keys = 1536;       // of a block
inline constexpr std::uint32_t most_ranks = 1024;        // leaves of a part that a search compares
inline constexpr std::uint32_t most_proposed = 2048;
inline constexpr std::uint32_t most_bins = 1280;       // that are listed at a time
inline constexpr std::uint32_t cut_buckets = 256;      // of scores, where bins are cut
inline constexpr std::uint32_t fewest_scratch = 2212;  // words: radix selection, or the positions of a tile
static_assert(shared_tile_rows <= fewest_scratch);
// Of a block's shared memory, at least what the kernel's static variables take (block.cuh).
inline constexpr std::uint32_t fixed_bytes = 256;

// The numbers that decide the shared memory of a search.
struct BlockShape {
    std::uint32_t parts = 1;
    std::uint32_t groups = 1;         // of codes
    std::uint32_t padded_query = 4;   // floats
    std::uint32_t padded_level1 = 4;  // floats
    std::uint32_t ranks = 8;          // leaves of a part, a multiple of 8; a power of two with more than two parts
    std::uint32_t bins = 256;         // bins that are listed at a time
    std::uint32_t proposed = 1;       // rows that are wanted
    std::uint32_t tile = tile_rows;
};

// The most rows that a selection keeps where `proposed` are wanted.
PGWARP_HOST_DEVICE constexpr std::uint32_t kept_of(std::uint32_t proposed)
{
    return proposed + proposed / 4 + 16;
}

// Keys that a block keeps: a tile always fits behind those that a selection keeps, and there is some room for more
// after one. There is room for a sort of the kept keys, too.
PGWARP_HOST_DEVICE constexpr std::uint32_t keys_of(std::uint32_t proposed, std::uint32_t tile)
{
    const std::uint32_t wanted = kept_of(proposed) + kept_of(proposed) / 2 + tile;
    return wanted <= fewest_keys ? fewest_keys : wanted;
}

// Offsets in bytes, each a multiple of 16. Scores of line parts (`line_scores`) are made where keys lie later.
struct BlockLayout {
    std::uint32_t terms = 0;        // u32 [groups * group_parts][line_room]
    std::uint32_t keys = 0;         // u64 [keys], or the scores of leaves
    std::uint32_t bins = 0;         // uint2 [bins]
    std::uint32_t scratch = 0;      // u32 [fewest_scratch], or a histogram of buckets and the scores of listed bins
    std::uint32_t query = 0;        // f32 [padded_query]
    std::uint32_t part_scores = 0;  // f32 [parts][padded_level1]
    std::uint32_t scores = 0;       // f32 [parts][ranks]
    std::uint32_t leaves = 0;       // u32 [parts][ranks]
    std::uint32_t offsets = 0;      // u32: the pairs of each rank that were visited, and their sums
    std::uint32_t bytes = 0;
    std::uint32_t line_scores = 0;  // floats from `keys` on

    static constexpr BlockLayout of(const BlockShape& shape)
    {
        BlockLayout at;
        const auto take = [&](std::uint32_t& offset, std::uint32_t bytes) {
            offset = at.bytes;
            at.bytes += (bytes + 15) / 16 * 16;
        };
        take(at.terms, shape.groups * group_parts * line_room * 4);
        take(at.keys, std::max(keys_of(shape.proposed, shape.tile), shape.parts * shape.ranks) * 8);
        take(at.bins, shape.bins * 8);
        at.line_scores = (at.bytes - at.keys) / 4;
        take(at.scratch, std::max(fewest_scratch, cut_buckets + shape.bins) * 4);
        take(at.query, shape.padded_query * 4);
        take(at.part_scores, shape.parts * shape.padded_level1 * 4);
        take(at.scores, shape.parts * shape.ranks * 4);
        take(at.leaves, shape.parts * shape.ranks * 4);
        // Two parts are combined to lists of twice as many.
        take(at.offsets, ((shape.parts > 2 ? 4 : 2) * shape.ranks + 4) * 4);
        return at;
    }
};

}  // namespace pgwarp::cuda::pqtree
