#include "engine/server/sent_bitmaps.h"

#include <algorithm>
#include <utility>

#include "methods/errors.h"

namespace pgwarp
{

namespace
{

// A session searches among few bitmaps in turns: those of the scans of a statement, or of its open cursors. One alone
// may be larger.
constexpr std::size_t most_kept = 8;
constexpr std::uint64_t most_bitmap_bytes = std::uint64_t{8} << 20;

}  // namespace

void SentBitmaps::add(const LoadTidsRequest& piece, std::span<const std::uint64_t> words)
{
    if (piece.first == 0) {
        staged_ = piece.bitmap;
        words_.clear();
    }
    if (staged_ != piece.bitmap || words_.size() != piece.first) throw BadRequest("piece of another bitmap");
    words_.insert(words_.end(), words.begin(), words.end());
    if (piece.final == 0) return;
    const char* fault = tid_bitmap_fault(words_);
    staged_ = no_tids;
    if (fault != nullptr) throw BadRequest(fault);
    std::erase_if(kept_, [&](const Kept& one) { return one.number == piece.bitmap; });
    kept_.insert(kept_.begin(), {piece.bitmap, std::make_shared<const TidBitmap>(std::exchange(words_, {}))});
    std::uint64_t bytes = 0;
    std::size_t fitting = 0;
    for (; fitting < std::min(kept_.size(), most_kept); ++fitting) {
        bytes += kept_[fitting].bitmap->memory_bytes();
        if (fitting > 0 && bytes > most_bitmap_bytes) break;
    }
    kept_.resize(fitting);
}

std::shared_ptr<const TidBitmap> SentBitmaps::find(std::uint64_t number)
{
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [number](const Kept& one) { return one.number == number; });
    if (found == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), found, found + 1);
    return kept_.front().bitmap;
}

}  // namespace pgwarp
