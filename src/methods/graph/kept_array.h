// An array of an index, as a searcher holds it: loaded, or lent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "methods/bulk_memory.h"

namespace pgwarp
{

template <class Element>
class KeptArray
{
public:
    void borrow(std::span<const Element> lent) { lent_ = lent; }
    // To be written, by several threads.
    std::span<Element> room(std::size_t count)
    {
        std::call_once(once_, [&] { own_.resize(count); });
        return own_;
    }
    // Once all is there.
    std::span<const Element> all(std::size_t count) { return lent_.data() != nullptr ? lent_ : room(count); }
    std::uint64_t memory_bytes() const { return own_.size() * sizeof(Element); }

private:
    std::once_flag once_;
    BulkVector<Element> own_;
    std::span<const Element> lent_;
};

}  // namespace pgwarp
