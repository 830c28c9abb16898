// How the warps of a search share the tiles of a query's texts. The tiles lie on two sides: of texts as long as the
// query or longer, and of shorter ones. A warp takes tiles of one side. Plain functions, for host and device.
#pragma once

#include <cstdint>

namespace pgwarp::cuda
{

// The tiles first, first + step, ... of a side.
struct TileShare {
    bool longer = false;  // the side
    std::uint32_t first = 0;
    std::uint32_t step = 1;
};

// Returns the share of one of `warps` warps, at least 2. The sides get warps by their numbers of tiles, in turn, and
// each that has tiles at least one.
constexpr TileShare share_tiles(std::uint32_t of_longer, std::uint32_t of_shorter, std::uint32_t warp,
                                std::uint32_t warps)
{
    const std::uint64_t all = std::uint64_t{of_longer} + of_shorter;
    std::uint64_t share = all > 0 ? std::uint64_t{warps} * of_longer / all : 0;  // warps of the longer ones
    if (of_longer > 0 && share == 0) share = 1;
    if (of_shorter > 0 && share == warps) share = warps - 1;
    const auto before = static_cast<std::uint32_t>(warp * share / warps);
    const auto behind = static_cast<std::uint32_t>((std::uint64_t{warp} + 1) * share / warps);
    if (behind > before) return {true, before, static_cast<std::uint32_t>(share)};
    return {false, warp - before, static_cast<std::uint32_t>(warps - share)};
}

}  // namespace pgwarp::cuda
