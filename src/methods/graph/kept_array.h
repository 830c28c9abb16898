// An array of a searcher: memory of its own, or borrowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "methods/bulk_memory.h"
#include "methods/once.h"

namespace pgwarp
{

template <class Element>
class KeptArray
{
public:
    void borrow(std::span<const Element> lent) { lent_ = lent; }
    // Returns own memory to write to, allocated at the first call. Thread-safe.
    std::span<Element> room(std::size_t count)
    {
        once_.run([&] { own_.resize(count); });
        return own_;
    }
    // Returns the whole array, once it is written.
    std::span<const Element> all(std::size_t count) { return lent_.data() != nullptr ? lent_ : room(count); }
    std::uint64_t memory_bytes() const { return own_.size() * sizeof(Element); }

private:
    Once once_;
    BulkVector<Element> own_;
    std::span<const Element> lent_;
};

}  // namespace pgwarp
