// The next rows after a cursor in the order of (value, row), for continuations.
//
// Radix selection over keys of 96 bits, value then row, 8 bits a pass. It stops when all keys with the prefix are
// wanted.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/answers.h"

namespace pgwarp::cuda::rows
{

// The values of all positions, on the device. NaN, padding and dead rows are no candidates.
struct PositionValues {
    const double* values;         // [positions]
    const std::uint32_t* row_at;  // [positions], no_row in padding
    const std::uint32_t* dead;    // one bit for each position, or null
    std::uint32_t positions;
};

struct RowCursor {
    double value;  // -infinity: start at the nearest row
    std::uint32_t row;
};

inline constexpr std::uint32_t ordered_most = 2048;  // wanted rows that are sorted on the device

// Device memory of one selection.
struct SelectionSpace {
    std::uint32_t* histograms = nullptr;  // [passes][256]
    std::byte* states = nullptr;          // [passes + 1]
};
SelectionSpace take_selection_space(Carver& memory);

// Selects the first `wanted` (>= 1) candidates strictly after the cursor, in order where wanted <= ordered_most, else
// in any order. out, on the device: the answer to one query, with found[0] at most `wanted`.
void first_after(const PositionValues& positions, const RowCursor& cursor, std::uint32_t wanted,
                 const SelectionSpace& space, const Answers& out, cudaStream_t stream);

// Calls value(first, count), which enqueues the values of those positions, in steps of a millisecond or two a launch.
// remote_row_bytes: bytes of a row that are read over the bus, or 0.
template <class Value>
void value_in_steps(std::uint32_t positions, std::size_t remote_row_bytes, const Value& value)
{
    constexpr std::uint32_t step_on_device = 1U << 20;
    constexpr std::size_t remote_step = std::size_t{64} << 20;  // bytes
    const std::uint32_t step =
        remote_row_bytes == 0 ? step_on_device : static_cast<std::uint32_t>(remote_step / remote_row_bytes + 1);
    for (std::uint32_t first = 0; first < positions; first += step) value(first, std::min(step, positions - first));
}

}  // namespace pgwarp::cuda::rows
