// The Levenshtein distance without a limit, in blocks of 32 characters of the query (Myers, "A fast bit-vector
// algorithm for approximate string matching based on dynamic programming", 1999): for the few comparisons that no band
// serves.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "matchcount/edit_masks.cuh"
#include "matchcount/text_view.h"

namespace pgwarp::cuda
{

// matches(block, column) returns the positions of the block that have the text's character `column`. query_length is at
// most most_query_length.
template <class Matches>
__device__ std::uint32_t distance_in_blocks(std::uint32_t query_length, std::uint32_t text_length,
                                            const Matches& matches)
{
    if (query_length == 0) return text_length;
    const std::uint32_t blocks = mask_words(query_length);
    std::uint32_t positive[mask_words(most_query_length)];
    std::uint32_t negative[mask_words(most_query_length)];
    for (std::uint32_t block = 0; block < blocks; ++block) {
        positive[block] = 0xffffffff;
        negative[block] = 0;
    }
    const std::uint32_t last = 1U << (query_length - 1) % 32;
    std::uint32_t distance = query_length;
    for (std::uint32_t column = 0; column < text_length; ++column) {
        // The horizontal difference above the block: the first row of the matrix counts the characters of the text.
        std::uint32_t rises = 1;
        std::uint32_t falls = 0;
        for (std::uint32_t block = 0; block < blocks; ++block) {
            const std::uint32_t below = positive[block];
            const std::uint32_t above = negative[block];
            const std::uint32_t equal = matches(block, column);
            const std::uint32_t with_fall = equal | falls;
            const std::uint32_t diagonal = (((with_fall & below) + below) ^ below) | with_fall | above;
            const std::uint32_t right = above | ~(diagonal | below);
            const std::uint32_t left = diagonal & below;
            if (block + 1 == blocks) {
                distance += (right & last) != 0;
                distance -= (left & last) != 0;
            }
            const std::uint32_t right_above = right << 1 | rises;
            const std::uint32_t left_above = left << 1 | falls;
            rises = right >> 31;
            falls = left >> 31;
            positive[block] = left_above | ~(diagonal | right_above);
            negative[block] = right_above & diagonal;
        }
    }
    return distance;
}

}  // namespace pgwarp::cuda
