// Rows of a build in a form of a fixed number of bytes, that come in any order. Their memory is reserved address space,
// so growth never copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "methods/rows/reservation.h"
#include "numeric/parallel.h"

namespace pgwarp
{

inline constexpr std::size_t most_packed_rows = (std::size_t{1} << 32) - 2;  // row numbers have 32 bits

class PackedRows
{
public:
    explicit PackedRows(std::size_t row_bytes);

    // Makes room for rows [0, count); thread-safe. Throws std::bad_alloc.
    void grow(std::size_t count);
    // The memory of a row, and of those behind it.
    std::byte* row(std::size_t number) const { return memory_.as<std::byte>() + number * row_bytes_; }
    // Puts the rows in order, in place: at place i the row that had the number order[i].
    void put_in_order(std::span<const std::uint32_t> order, ThreadPool& pool);

private:
    std::size_t row_bytes_;
    std::mutex mutex_;
    Reservation memory_;
};

}  // namespace pgwarp
