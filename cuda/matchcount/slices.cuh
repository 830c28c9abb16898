// Posting slices: where the postings of an item lie in one range of rows.
#pragma once

#include <cstdint>

#include "matchcount/bank_order.h"
#include "matchcount/binary_search.cuh"
#include "matchcount/keyword_lists.h"

namespace pgwarp::cuda::matchcount
{

// Postings of a range: list_array[range_starts[range] + start] and on.
struct Slice {
    std::uint32_t start = 0;
    std::uint32_t length = 0;
};

__device__ inline Slice slice_of(const KeywordListsView& lists, std::uint32_t range, const Item& item)
{
    if (item.last < item.first) return {};
    const std::uint32_t* positions;
    std::uint32_t first;
    std::uint32_t last;
    if (lists.universe != 0) {
        positions = lists.positions + std::size_t{range} * (lists.universe + 1);
        first = min(item.first, lists.universe);
        last = min(item.last, lists.universe - 1) + 1;
    } else {
        const std::uint64_t start = lists.list_starts[range];
        const auto count = static_cast<std::uint32_t>(lists.list_starts[range + 1] - start);
        const std::uint32_t* keywords = lists.keywords + start;
        positions = lists.positions + start + range;
        first = first_at_least(keywords, count, item.first);
        last = item.last == UINT32_MAX ? count : first_at_least(keywords, count, item.last + 1);
    }
    const std::uint32_t at = positions[first];
    return {at, positions[last] - at};
}

// Returns the part of a slice of one keyword in rows [first, first + rows) of the range, which are whole sections.
__device__ inline Slice cut_slice(const std::uint16_t* postings, const Slice& slice, std::uint32_t first,
                                  std::uint32_t rows)
{
    // Postings ascend by section, not within one.
    const auto below = [&](std::uint32_t row) {
        std::uint32_t at = 0;
        for (std::uint32_t count = slice.length; count > 0;) {
            const std::uint32_t half = count / 2;
            const bool is_below = postings[slice.start + at + half] / section_rows < row / section_rows;
            at = is_below ? at + half + 1 : at;
            count = is_below ? count - half - 1 : half;
        }
        return at;
    };
    const std::uint32_t begin = first == 0 ? 0 : below(first);
    const std::uint32_t end = first + rows >= range_rows ? slice.length : below(first + rows);
    return {slice.start + begin, end - begin};
}

}  // namespace pgwarp::cuda::matchcount
