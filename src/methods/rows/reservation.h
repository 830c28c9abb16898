// Memory of a build's rows: address space that is reserved first and becomes memory as rows arrive, so that growth
// never copies.
#pragma once

#include <cstddef>

namespace pgwarp
{

// Nothing of it counts against the system's commit limit before it is used.
class Reservation
{
public:
    // As many bytes as there is room for, at most `bytes`.
    explicit Reservation(std::size_t bytes);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    template <class Element>
    Element* as() const
    {
        return static_cast<Element*>(base_);
    }
    // Makes [0, wanted) usable; what was not written to is zero. Throws std::bad_alloc when there is not so much.
    void grow(std::size_t wanted);
    // Gives back whole pages of [from, to).
    void release(std::size_t from, std::size_t to);

private:
    void* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t usable_ = 0;
};

}  // namespace pgwarp
