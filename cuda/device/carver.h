// Cuts one block of memory into named arrays. A layout is written once, as a function that takes each array from a
// carver: a carver without memory tells how large the block must be, one with memory places the arrays in it.
#pragma once

#include <cstddef>

namespace pgwarp::cuda
{

class Carver
{
public:
    static constexpr std::size_t alignment = 256;

    // memory: aligned to `alignment`, like allocations of the device and page-locked memory. Null: the carver only adds
    // up sizes.
    explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}

    // The next array of `count` elements; null where there is no memory.
    template <class T>
    T* take(std::size_t count)
    {
        std::byte* const at = memory_ == nullptr ? nullptr : memory_ + used_;
        used_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
        return reinterpret_cast<T*>(at);
    }
    // Bytes of all arrays so far.
    std::size_t used() const { return used_; }

private:
    std::byte* memory_;
    std::size_t used_ = 0;
};

// Bytes that lay_out(carver) takes.
template <class LayOut>
std::size_t carved_bytes(const LayOut& lay_out)
{
    Carver carver;
    lay_out(carver);
    return carver.used();
}

}  // namespace pgwarp::cuda
