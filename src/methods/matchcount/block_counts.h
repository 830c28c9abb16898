// Counts of shared keywords for neighbouring texts in the order of lengths: few enough counters for the fastest cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/matchcount/match_count.h"

namespace pgwarp::matchcount
{

inline constexpr std::uint32_t block_texts = 16384;
inline constexpr std::uint32_t most_count = 255;  // of a counter, which stops there

using BlockCounts = std::array<std::uint8_t, block_texts>;
using PostingLists = std::vector<std::span<const std::uint32_t>>;

// Returns the posting lists of the keywords that occur.
inline PostingLists find_lists(const KeywordLists& lists, std::span<const std::uint32_t> keywords)
{
    PostingLists found;
    for (const std::uint32_t keyword : keywords) {
        const std::span<const std::uint32_t> list = lists.list(keyword);
        if (!list.empty()) found.push_back(list);
    }
    return found;
}

// Sets counts[i] to the number of lists that hold place begin + i, for the places before `end`.
inline void count_block(const PostingLists& lists, std::uint32_t begin, std::uint32_t end, BlockCounts& counts)
{
    std::fill_n(counts.begin(), end - begin, std::uint8_t{0});
    for (const std::span<const std::uint32_t> list : lists) {
        const auto first = std::ranges::lower_bound(list, begin);
        for (auto place = first; place != list.end() && *place < end; ++place) {
            std::uint8_t& count = counts[*place - begin];
            count = static_cast<std::uint8_t>(count + (count < most_count));
        }
    }
}

}  // namespace pgwarp::matchcount
