// Bitmaps of rows, such as the dead ones, and their versions. Searchers cache data derived from a bitmap by its
// version, so that no search compares all words of a bitmap to find it unchanged.
#pragma once

#include <cstdint>
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

// Caches a value derived from a bitmap, until one of a later version is made. Thread-safe.
template <class Made>
class OfBitmap
{
public:
    using Use = std::shared_ptr<const Made>;  // the reader holds it while it reads

    // Returns the cached value of this version, or else that of make(). Version 0 is never cached.
    template <class Make>
    Use get(std::uint64_t version, const Make& make)
    {
        if (version == 0) return std::make_shared<const Made>(make());
        if (Use known = find(version)) return known;
        const std::lock_guard alone(making_);
        if (Use known = find(version)) return known;
        Use made = std::make_shared<const Made>(make());
        Use older;  // outlives the lock: it may free device memory
        const std::lock_guard lock(mutex_);
        // A search that began before others may still have an earlier version.
        if (version > version_) {
            older = std::exchange(made_, made);
            version_ = version;
        }
        return made;
    }

    // Drops a value of an earlier version, for callers without memory for the one of `version`. Its last reader frees
    // it. Does not wait for a running make().
    void drop_before(std::uint64_t version)
    {
        Use older;  // outlives the lock
        const std::lock_guard lock(mutex_);
        if (version_ < version) older = std::exchange(made_, nullptr);
    }

private:
    Use find(std::uint64_t version)
    {
        const std::lock_guard lock(mutex_);
        return version == version_ ? made_ : nullptr;
    }

    std::mutex making_;  // held by the one thread that makes a value
    std::mutex mutex_;
    std::uint64_t version_ = 0;
    Use made_;
};

}  // namespace pgwarp
