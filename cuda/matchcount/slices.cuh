// Posting slices: where the postings of an item lie in one range of rows.
#pragma once

#include <cstdint>

#include "matchcount/keyword_lists.h"

namespace pgwarp::cuda::matchcount
{

// Postings of a range: list_array[range_starts[range] + start] and on.
struct Slice {
    std::uint32_t start = 0;
    std::uint32_t length = 0;
};

// Returns the first index in [0, count) whose value is at least `least`; count where there is none.
template <class Value>
__device__ inline std::uint32_t first_at_least(const Value* values, std::uint32_t count, Value least)
{
    std::uint32_t first = 0;
    while (count > 0) {
        const std::uint32_t half = count / 2;
        const bool below = values[first + half] < least;
        first = below ? first + half + 1 : first;
        count = below ? count - half - 1 : half;
    }
    return first;
}

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

}  // namespace pgwarp::cuda::matchcount
