// The texts of near lengths, 32 at a time, nearest lengths first. They lie on two sides: those as long as the query or
// longer, and the shorter ones. A warp goes over tiles of one side, so that its lanes compare texts of like lengths.
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

    // Of the texts whose lengths differ from the query's by at most `gap`, for one of `warps` warps (at least 2). The
    // sides share the warps by their numbers of tiles, in turn.
    __device__ TextTiles(const TextsView& texts, std::uint32_t query_length, std::uint32_t gap, std::uint32_t warp,
                         std::uint32_t warps)
    {
        const std::uint32_t first = first_of(texts, query_length > gap ? query_length - gap : 0);
        const std::uint32_t last = gap > texts.longest ? texts.count : first_of(texts, query_length + gap + 1);
        middle_ = first_of(texts, query_length);
        const std::uint32_t of_longer = (last - middle_ + 31) / 32;
        const std::uint32_t of_shorter = (middle_ - first + 31) / 32;
        std::uint32_t share =
            static_cast<std::uint32_t>(std::uint64_t{warps} * of_longer / max(of_longer + of_shorter, 1));
        if (of_longer > 0) share = max(share, 1);
        if (of_shorter > 0) share = min(share, warps - 1);
        const auto before = static_cast<std::uint32_t>(std::uint64_t{warp} * share / warps);
        longer_ = static_cast<std::uint32_t>(std::uint64_t{warp + 1} * share / warps) > before;
        texts_ = longer_ ? last - middle_ : middle_ - first;
        begin_ = longer_ ? before : warp - before;
        step_ = longer_ ? share : warps - share;
    }

    // The warp's tiles are begin(), begin() + step(), ... below end().
    __device__ std::uint32_t begin() const { return begin_; }
    __device__ std::uint32_t step() const { return step_; }
    __device__ std::uint32_t end() const { return (texts_ + 31) / 32; }
    // Returns the place of the lane in a tile, or no_place. The first lane has the nearest length.
    __device__ std::uint32_t place(std::uint32_t tile, std::uint32_t lane) const
    {
        const std::uint32_t at = 32 * tile + lane;
        if (at >= texts_) return no_place;
        return longer_ ? middle_ + at : middle_ - 1 - at;
    }

private:
    __device__ static std::uint32_t first_of(const TextsView& texts, std::uint32_t length)
    {
        return length > texts.longest ? texts.count : texts.first_of_length[length];
    }

    std::uint32_t middle_;  // the first place of a text as long as the query
    bool longer_;
    std::uint32_t texts_;  // of the side
    std::uint32_t begin_;
    std::uint32_t step_;
};

}  // namespace pgwarp::cuda
