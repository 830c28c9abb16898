// The bitmaps of heap addresses that a session has sent: the last few that it used.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/filter/tid_bitmap.h"
#include "protocol/messages.h"

namespace pgwarp
{

class SentBitmaps
{
public:
    // Adds a piece; the last completes the bitmap. Throws BadRequest for pieces that don't follow each other, and for
    // words that are no bitmap.
    void add(const LoadTidsRequest& piece, std::span<const std::uint64_t> words);
    // Null: it was not sent, or is no longer kept.
    std::shared_ptr<const TidBitmap> find(std::uint64_t number);

private:
    struct Kept {
        std::uint64_t number;
        std::shared_ptr<const TidBitmap> bitmap;
    };

    std::uint64_t staged_ = no_tids;  // the bitmap that is being sent
    std::vector<std::uint64_t> words_;
    std::vector<Kept> kept_;  // the latest used first
};

}  // namespace pgwarp
