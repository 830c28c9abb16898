// Rows in page-locked host memory, which kernels read over the bus (remote_row.cuh). Each row is padded to whole pieces
// of 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/memory.h"

namespace pgwarp::cuda::rows
{

class RemoteRows
{
public:
    RemoteRows() = default;
    // element: bytes of an element, 2 or 4. Throws std::bad_alloc.
    RemoteRows(std::size_t rows, std::size_t dimensions, std::size_t element);

    bool empty() const { return memory_.size() == 0; }
    std::size_t bytes() const { return memory_.size(); }
    std::size_t stride() const { return stride_; }  // elements
    std::size_t row_bytes() const { return stride_ * element_; }

    // Takes a piece of the row-major array [rows][dimensions], as Searcher::write does. Throws BadRequest past its end.
    void write(std::uint64_t offset, std::span<const std::byte> piece);
    // Page-locks the rows. Throws std::bad_alloc where the system refuses.
    void lock() { memory_.lock(); }

    template <class T>
    const T* row(std::size_t number) const
    {
        return reinterpret_cast<const T*>(memory_.data() + number * row_bytes());
    }
    // The address of the rows [rows][stride] on the current device. Valid after lock().
    template <class T>
    const T* on_device() const
    {
        return reinterpret_cast<const T*>(memory_.on_device());
    }

private:
    HostMemory memory_;
    std::size_t given_bytes_ = 0;  // bytes of a row in the array that is written
    std::size_t element_ = 0;
    std::size_t stride_ = 0;
    std::size_t rows_ = 0;
};

}  // namespace pgwarp::cuda::rows
