// Versions of bitmaps of dead rows. One bit set among a billion rows is as good as any other bitmap: what searchers
// make of a bitmap is kept by its version, so that no search looks at all words to learn that nothing has changed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace pgwarp
{

// Never 0, and never the same again in this process; later ones are larger.
std::uint64_t new_bitmap_version();

// What was made of a bitmap, until one of a later version comes. Thread-safe.
template <class Made>
class OfBitmap
{
public:
    using Use = std::shared_ptr<const Made>;  // to be kept while it is read

    // What make() returned for this version, or returns now. Version 0 is nobody's: its bitmap is made anew each time.
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

    // Forgets what was made for an earlier version than this, which stays in memory until nobody reads it any more. For
    // who has no room for what this version needs. Takes no lock that is held while something is made.
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

    std::mutex making_;  // at most one is made at a time
    std::mutex mutex_;
    std::uint64_t version_ = 0;
    Use made_;
};

}  // namespace pgwarp
