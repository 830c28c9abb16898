// Memory of large arrays. It is not cleared, so that the threads that fill an array touch its pages first, and it lies
// in huge pages where the system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace pgwarp
{

template <class T>
struct BulkAllocator {
    using value_type = T;
    static constexpr std::size_t huge_page = std::size_t{2} << 20;

    BulkAllocator() = default;
    template <class Other>
    BulkAllocator(const BulkAllocator<Other>&)
    {
    }

    T* allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
        const std::size_t bytes = count * sizeof(T);
        const std::size_t alignment = bytes >= huge_page ? huge_page : 64;
        const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
        void* const memory = std::aligned_alloc(alignment, rounded);
        if (memory == nullptr) throw std::bad_alloc();
        if (alignment == huge_page) ::madvise(memory, rounded, MADV_HUGEPAGE);
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t) { std::free(memory); }

    // Without an initial value the memory stays as it is.
    template <class Other>
    void construct(Other* at)
    {
        ::new (static_cast<void*>(at)) Other;
    }
    template <class Other, class... Arguments>
    void construct(Other* at, Arguments&&... arguments)
    {
        ::new (static_cast<void*>(at)) Other(std::forward<Arguments>(arguments)...);
    }

    friend bool operator==(const BulkAllocator&, const BulkAllocator&) { return true; }
};

// resize() leaves new elements undefined.
template <class T>
using BulkVector = std::vector<T, BulkAllocator<T>>;

}  // namespace pgwarp
