// The texts of near lengths, 32 at a time, nearest lengths first. They lie on two sides: those as long as the query or
// longer, and the shorter ones. A warp goes over tiles of one side, so that its lanes compare texts of like lengths.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "matchcount/text_view.h"
#include "matchcount/tile_share.h"

namespace pgwarp::cuda
{

class TextTiles
{
public:
    static constexpr std::uint32_t no_place = 0xffffffff;

    // Of the texts whose lengths differ from the query's by at most `gap`, for one of `warps` warps (at least 2). The
    // warps that share a query need equal gaps.
    __device__ TextTiles(const TextsView& texts, std::uint32_t query_length, std::uint32_t gap, std::uint32_t warp,
                         std::uint32_t warps)
    {
        const std::uint32_t first = first_of(texts, query_length > gap ? query_length - gap : 0);
        const std::uint32_t last = gap > texts.longest ? texts.count : first_of(texts, query_length + gap + 1);
        middle_ = first_of(texts, query_length);
        const std::uint32_t of_longer = (last - middle_ + 31) / 32;
        const std::uint32_t of_shorter = (middle_ - first + 31) / 32;
        share_ = share_tiles(of_longer, of_shorter, warp, warps);
        texts_ = share_.longer ? last - middle_ : middle_ - first;
    }

    // The warp's tiles are begin(), begin() + step(), ... below end().
    __device__ std::uint32_t begin() const { return share_.first; }
    __device__ std::uint32_t step() const { return share_.step; }
    __device__ std::uint32_t end() const { return (texts_ + 31) / 32; }
    // Returns the place of the lane in a tile, or no_place. The first lane has the nearest length.
    __device__ std::uint32_t place(std::uint32_t tile, std::uint32_t lane) const
    {
        const std::uint32_t at = 32 * tile + lane;
        if (at >= texts_) return no_place;
        return share_.longer ? middle_ + at : middle_ - 1 - at;
    }

private:
    __device__ static std::uint32_t first_of(const TextsView& texts, std::uint32_t length)
    {
        return length > texts.longest ? texts.count : texts.first_of_length[length];
    }

    std::uint32_t middle_;  // the first place of a text as long as the query
    TileShare share_;
    std::uint32_t texts_;  // of the side
};

}  // namespace pgwarp::cuda
