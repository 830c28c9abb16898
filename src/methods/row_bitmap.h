// Bitmaps of rows, such as the dead ones, and their versions. Searchers cache data derived from a bitmap by its
// version, so that no search compares all words of a bitmap to find it unchanged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace pgwarp
{

// Bit i set = row i is in it; of dead rows: tombstoned. Empty = no row is.
using RowBitmap = std::span<const std::uint64_t>;
inline bool bit_is_set(RowBitmap bitmap, std::uint64_t i)
{
    return !bitmap.empty() && ((bitmap[i / 64] >> (i % 64)) & 1U) != 0;
}
inline void set_bit(std::span<std::uint64_t> bitmap, std::uint64_t i)
{
    bitmap[i / 64] |= std::uint64_t{1} << (i % 64);
}
// Returns the rows below `count` that are not in the bitmap, ascending.
std::vector<std::uint32_t> rows_outside(RowBitmap bitmap, std::size_t count);

// Returns a version larger than all earlier ones of this process; never 0.
std::uint64_t new_bitmap_version();

// Caches values derived from bitmaps, those of the versions that were asked for last: searches with predicates use many
// bitmaps in turns, beside that of the dead rows. Thread-safe.
template <class Made>
class OfBitmap
{
public:
    using Use = std::shared_ptr<const Made>;  // the reader holds it while it reads
    static constexpr std::size_t most_kept = 8;

    // Returns the cached value of this version, or else that of make(). Version 0 is never cached.
    template <class Make>
    Use get(std::uint64_t version, const Make& make)
    {
        if (version == 0) return std::make_shared<const Made>(make());
        if (Use known = find(version)) return known;
        const std::lock_guard alone(making_);
        if (Use known = find(version)) return known;
        Use made = std::make_shared<const Made>(make());
        Use oldest;  // outlives the lock: it may free device memory
        const std::lock_guard lock(mutex_);
        if (kept_.size() == most_kept) {
            oldest = std::move(kept_.back().made);
            kept_.pop_back();
        }
        kept_.insert(kept_.begin(), {version, made});
        return made;
    }

    // Drops the values of other versions, for callers without memory for the one of `version`. Their last readers free
    // them. Does not wait for a running make().
    void drop_others(std::uint64_t version)
    {
        std::vector<Kept> others;  // outlives the lock
        const std::lock_guard lock(mutex_);
        const auto first_other = std::stable_partition(kept_.begin(), kept_.end(),
                                                       [version](const Kept& one) { return one.version == version; });
        others.assign(std::make_move_iterator(first_other), std::make_move_iterator(kept_.end()));
        kept_.erase(first_other, kept_.end());
    }

private:
    struct Kept {
        std::uint64_t version;
        Use made;
    };

    Use find(std::uint64_t version)
    {
        const std::lock_guard lock(mutex_);
        const auto known =
            std::find_if(kept_.begin(), kept_.end(), [version](const Kept& one) { return one.version == version; });
        if (known == kept_.end()) return nullptr;
        std::rotate(kept_.begin(), known, known + 1);
        return kept_.front().made;
    }

    std::mutex making_;  // held by the one thread that makes a value
    std::mutex mutex_;
    std::vector<Kept> kept_;  // the one that was asked for last comes first
};

}  // namespace pgwarp
