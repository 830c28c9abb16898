// Reserved address space by mmap, made usable in steps by mprotect.
#include "methods/rows/reservation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace pgwarp
{

namespace
{

constexpr std::size_t fewest_bytes = std::size_t{1} << 30;
constexpr std::size_t smallest_step = std::size_t{64} << 20;
// ThreadSanitizer leaves little address space to the program.
#ifdef __SANITIZE_THREAD__
constexpr std::size_t most_bytes = std::size_t{16} << 30;
#else
constexpr std::size_t most_bytes = ~std::size_t{0};
#endif

}  // namespace

Reservation::Reservation(std::size_t bytes) : bytes_(std::min(bytes, most_bytes))
{
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    while ((base_ = ::mmap(nullptr, bytes_, PROT_NONE, flags, -1, 0)) == MAP_FAILED) {
        if (bytes_ <= fewest_bytes) throw std::bad_alloc();
        bytes_ /= 2;
    }
    // Huge pages save most of the page faults, and nothing here splits them.
    ::madvise(base_, bytes_, MADV_HUGEPAGE);
}

Reservation::~Reservation()
{
    ::munmap(base_, bytes_);
}

void Reservation::grow(std::size_t wanted)
{
    if (wanted <= usable_) return;
    const std::size_t step = std::max(smallest_step, usable_ / 8);
    std::size_t target = (wanted + step - 1) / step * step;
    if (target > bytes_) target = bytes_;
    if (wanted > target || ::mprotect(base_, target, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    usable_ = target;
}

void Reservation::release(std::size_t from, std::size_t to)
{
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    from = (from + page - 1) / page * page;
    to = std::min(to, usable_) / page * page;
    if (from < to) ::madvise(static_cast<char*>(base_) + from, to - from, MADV_DONTNEED);
}

}  // namespace pgwarp
