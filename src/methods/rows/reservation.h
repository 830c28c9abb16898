// Memory of a build's rows: address space that is reserved first and becomes memory as rows arrive, so that growth
// never copies.
#pragma once

#include <cstddef>

namespace pgwarp
{

// Memory counts against the system's commit limit when it is used, not before.
class Reservation
{
public:
    // Reserves `bytes`; where the address space is short, half of it, a quarter, and so on. Throws std::bad_alloc below
    // 1 GiB.
    explicit Reservation(std::size_t bytes);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    template <class Element>
    Element* as() const
    {
        return static_cast<Element*>(base_);
    }
    // Makes [0, wanted) usable; new memory is zero. Throws std::bad_alloc.
    void grow(std::size_t wanted);
    // Gives back whole pages of [from, to).
    void release(std::size_t from, std::size_t to);

private:
    void* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t usable_ = 0;
};

}  // namespace pgwarp
