// The rows of a build: they arrive in chunks from several connections, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "numeric/parallel.h"
#include "protocol/rows.h"

namespace pgwarp
{

class RowBuffer
{
public:
    // For dense rows without attributes.
    explicit RowBuffer(std::size_t dimensions);
    // For the rows of an index of this shape.
    explicit RowBuffer(const IndexShape& shape);
    ~RowBuffer();
    RowBuffer(const RowBuffer&) = delete;
    RowBuffer& operator=(const RowBuffer&) = delete;

    // Appends copies of rows; thread-safe. Returns the copies of dense rows. Memory is reserved address space, so
    // growth never copies and callers copy in parallel. Throws BadRequest for rows of another layout.
    std::span<float> append(std::span<const Tid> tids, const RowView& rows);
    // The same for dense rows [tids.size()][dimensions].
    std::span<float> append(std::span<const Tid> tids, std::span<const float> vectors);
    // Brings rows into tid order: dense ones in place, without a second copy. Call once, after the last append. Null:
    // no other threads.
    void sort_by_tid(ThreadPool* pool = nullptr);
    std::size_t size() const;
    std::size_t dimensions() const;
    std::span<const Tid> tids() const;
    // All rows, of any layout; without the dense values once these were given up.
    RowView rows() const;
    // The dense rows [size][dimensions]; empty once they were given up.
    std::span<float> vectors();
    // Overwrites the floats by their fp16 form in place and gives the freed memory back; vectors() is gone afterwards.
    // encode(row, out) is called in row order.
    std::span<const std::uint16_t> compact_to_half(
        const std::function<void(const float* row, std::uint16_t* out)>& encode);
    // Gives the floats up: room for [size][dimensions] halves in the same memory, to be filled by the caller, and the
    // rest freed. vectors() is gone afterwards.
    std::span<std::uint16_t> replace_by_half();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace pgwarp
