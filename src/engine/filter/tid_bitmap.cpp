#include "engine/filter/tid_bitmap.h"

#include <algorithm>
#include <bit>

namespace pgwarp
{

TidBitmap::TidBitmap(std::vector<std::uint64_t> words) : words_(std::move(words))
{
    for (std::size_t at = 0; at < words_.size();) {
        const TidPage page = front_page(std::span(words_).subspan(at));
        begin_.push_back(static_cast<std::uint32_t>(at));
        whole_pages_ += page.is_whole() ? 1 : 0;
        for (const std::uint64_t bits : page.bits) tids_ += static_cast<std::uint64_t>(std::popcount(bits));
        at += 1 + page.bits.size();
    }
}

bool TidBitmap::contains(const Tid& tid) const
{
    const auto after = std::upper_bound(
        begin_.begin(), begin_.end(), tid.block,
        [this](std::uint32_t block, std::uint32_t at) { return block < static_cast<std::uint32_t>(words_[at]); });
    if (after == begin_.begin()) return false;
    const TidPage page = front_page(std::span(words_).subspan(*std::prev(after)));
    return page.block == tid.block && page.contains(tid.offset);
}

}  // namespace pgwarp
