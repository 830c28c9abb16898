// The texts of near lengths, 32 at a time, nearest lengths first: tiles alternate between the texts that are as long as
// the query or longer, and the shorter ones.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "matchcount/text_view.h"

namespace pgwarp::cuda
{

class TextTiles
{
public:
    static constexpr std::uint32_t no_place = 0xffffffff;

    // Of the texts whose lengths differ from the query's by at most `gap`.
    __device__ TextTiles(const TextsView& texts, std::uint32_t query_length, std::uint32_t gap)
        : first_(first_of(texts, query_length > gap ? query_length - gap : 0)),
          middle_(first_of(texts, query_length)),
          last_(gap > texts.longest ? texts.count : first_of(texts, query_length + gap + 1))
    {
    }

    // Twice the number of tiles of the larger side.
    __device__ std::uint32_t count() const { return 2 * ((max(last_ - middle_, middle_ - first_) + 31) / 32); }
    // Returns the place of the lane in a tile, or no_place.
    __device__ std::uint32_t place(std::uint32_t tile, std::uint32_t lane) const
    {
        const std::uint32_t at = tile / 2 * 32 + lane;
        if (tile % 2 == 0) return at < last_ - middle_ ? middle_ + at : no_place;
        return at < middle_ - first_ ? middle_ - 1 - at : no_place;
    }

private:
    __device__ static std::uint32_t first_of(const TextsView& texts, std::uint32_t length)
    {
        return length > texts.longest ? texts.count : texts.first_of_length[length];
    }

    std::uint32_t first_;
    std::uint32_t middle_;
    std::uint32_t last_;
};

}  // namespace pgwarp::cuda
