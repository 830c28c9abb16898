// The Levenshtein distance of a query to a text of a warp's lane, in a band of diagonals (Hyyro, "A bit-vector
// algorithm for computing Levenshtein and Damerau edit distances", 2003). Bit b of a vector stands for the diagonal
// (position in the query less position in the text) first + b, so one column moves the band by one position of the
// query.
//
// A path of cost t from corner to corner, for a text that is d characters longer, stays within the diagonals
// -(t + d) / 2 to (t - d) / 2. Distances do not fall along a diagonal: that of the last corner gives the result by its
// number of mismatches, and a lower bound of it in each column.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "matchcount/edit_masks.cuh"
#include "select/warp.cuh"

namespace pgwarp::cuda
{

// The largest distance that a band of `words` words finds. The first diagonal is a multiple of 4, so that the four
// characters of a word of text read the same rows of masks.
constexpr std::uint32_t band_reach(std::uint32_t words)
{
    return 32 * words - 4;
}

// A text of a lane.
struct LaneText {
    const uint4* ids = nullptr;
    std::uint32_t length = 0;
    bool compared = false;  // others take part in the work of the warp
};

namespace detail
{

// Returns a + b in `words` words.
template <int words>
__device__ inline void add_words(const std::uint32_t (&a)[words], const std::uint32_t (&b)[words],
                                 std::uint32_t (&sum)[words])
{
    if constexpr (words == 1) {
        sum[0] = a[0] + b[0];
    } else {
        asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum[0]) : "r"(a[0]), "r"(b[0]));
#pragma unroll
        for (int w = 1; w + 1 < words; ++w)
            asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum[w]) : "r"(a[w]), "r"(b[w]));
        asm volatile("addc.u32 %0, %1, %2;" : "=r"(sum[words - 1]) : "r"(a[words - 1]), "r"(b[words - 1]));
    }
}

// The vertical differences of a column in the band, and the mismatches along the diagonal of the last corner.
template <int words>
struct Band {
    std::uint32_t positive[words];
    std::uint32_t negative[words];
    std::uint32_t last_corner[words];  // the bit of its diagonal
    std::uint32_t distance;

    // Goes on by a character that matches the query where `matches` has bits.
    __device__ void advance(const std::uint32_t (&matches)[words])
    {
        std::uint32_t some[words];
        std::uint32_t sum[words];
        std::uint32_t diagonal[words];  // the diagonal difference is zero
#pragma unroll
        for (int w = 0; w < words; ++w) some[w] = matches[w] & positive[w];
        add_words<words>(some, positive, sum);
        std::uint32_t reached = 0;
#pragma unroll
        for (int w = 0; w < words; ++w) {
            diagonal[w] = (sum[w] ^ positive[w]) | matches[w] | negative[w];
            reached |= diagonal[w] & last_corner[w];
        }
        // One predicated addition; the compiler makes two instructions of an ordinary one.
        asm("{\n.reg .pred missed;\nsetp.eq.u32 missed, %1, 0;\n@missed add.u32 %0, %0, 1;\n}"
            : "+r"(distance)
            : "r"(reached));
#pragma unroll
        for (int w = 0; w < words; ++w) {
            const std::uint32_t right = negative[w] | ~(diagonal[w] | positive[w]);
            const std::uint32_t left = diagonal[w] & positive[w];
            const std::uint32_t next = __funnelshift_r(diagonal[w], w + 1 < words ? diagonal[w + 1] : 0, 1);
            negative[w] = next & right;
            positive[w] = left | ~(next | right);
        }
    }
};

// Goes on by the four characters of a word of ids. The band begins at bit `shift` of the table's row, which is `row`
// bytes behind its begin.
template <int words>
__device__ inline void advance_word(Band<words>& band, std::uint32_t ids, const std::uint32_t* table, std::uint32_t row,
                                    std::uint32_t shift)
{
    constexpr std::uint32_t column_bytes = (mask_ids - 1) * sizeof(std::uint32_t);
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
        // The id times 4: rows have 1024 bytes, so that its bits are free in `row`.
        const std::uint32_t id = i == 0 ? ids << 2 : ids >> (8 * i - 2);
        const std::uint32_t offset = (id & column_bytes) | row;
        const auto* const column =
            reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const std::byte*>(table) + offset);
        std::uint32_t matches[words];
        std::uint32_t low = column[0];
#pragma unroll
        for (int w = 0; w < words; ++w) {
            const std::uint32_t high = column[(w + 1) * mask_ids];
            matches[w] = __funnelshift_r(low, high, shift + i);
            low = high;
        }
        band.advance(matches);
    }
}

}  // namespace detail

// Returns the distance where it is at most `limit`, otherwise a larger number. limit <= band_reach(words); the lengths
// of compared texts differ from the query's by at most `limit`. Called by all lanes of a warp with equal arguments but
// `text`.
template <int words>
__device__ std::uint32_t distance_in_band(const std::uint32_t* table, std::uint32_t query_length, const LaneText& text,
                                          std::uint32_t limit)
{
    constexpr auto reach = static_cast<int>(band_reach(words));
    const std::uint32_t length = text.compared ? text.length : query_length;
    const int longer = static_cast<int>(length) - static_cast<int>(query_length);
    const int before = ((reach + longer) / 2 + 3) / 4 * 4;  // the diagonal 0 is this bit
    const int corner = before - longer;
    detail::Band<words> band;
    band.distance = longer < 0 ? -longer : 0;
#pragma unroll
    for (int w = 0; w < words; ++w) {
        const int first = before - 32 * w;
        band.positive[w] = first <= 0 ? 0xffffffff : first >= 32 ? 0 : 0xffffffff << first;
        band.negative[w] = 0;
        band.last_corner[w] = corner / 32 == w ? 1U << corner % 32 : 0;
    }
    const std::uint32_t pieces = text.compared ? (length + 15) / 16 : 0;
    const std::uint32_t most_length = warp_largest(text.compared ? length : 0);
    const std::uint32_t last_row = mask_rows(query_length) - 1 - words;
    std::uint32_t at = 32 * mask_rows_before - static_cast<std::uint32_t>(before);
    uint4 next = pieces > 0 ? __ldg(text.ids) : uint4{0, 0, 0, 0};
    for (std::uint32_t piece = 0; 16 * piece < most_length; ++piece) {
        const std::uint32_t four[4] = {next.x, next.y, next.z, next.w};
        next = piece + 1 < pieces ? __ldg(text.ids + piece + 1) : uint4{0, 0, 0, 0};
        const std::uint32_t end = (most_length - 16 * piece + 3) / 4;  // of the words
        const auto advance = [&](std::uint32_t word) {
            detail::advance_word<words>(band, four[word], table, min(at / 32, last_row) * mask_row_bytes, at % 32);
            at += 4;
        };
        if (end >= 4 && words < 4) {
#pragma unroll
            for (std::uint32_t word = 0; word < 4; ++word) advance(word);
        } else {
#pragma unroll
            for (std::uint32_t word = 0; word < 4; ++word)
                if (word < end) advance(word);
        }
        if (__all_sync(0xffffffff, band.distance > limit || !text.compared)) break;
    }
    return band.distance;
}

}  // namespace pgwarp::cuda
