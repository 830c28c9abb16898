// The rows that come next after a cursor in order of (value, row): what a continuation asks for.
//
// Radix selection over keys of 96 bits, value then row, 8 bits a pass; it stops when what is left is wanted whole.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/answers.h"

namespace pgwarp::cuda::rows
{

// Every position's value, on the device. NaN, padding and dead rows are no candidates.
struct PositionValues {
    const double* values;         // [positions]
    const std::uint32_t* row_at;  // [positions], no_row in padding
    const std::uint32_t* dead;    // bit per position, or none
    std::uint32_t positions;
};

struct RowCursor {
    double value;  // -infinity: from the front
    std::uint32_t row;
};

inline constexpr std::uint32_t ordered_most = 2048;  // wanted rows that are sorted on the device

// Device memory of one selection, beside its answer.
struct SelectionSpace {
    std::uint32_t* histograms = nullptr;  // of each pass
    std::byte* states = nullptr;          // after each pass
};
SelectionSpace take_selection_space(Carver& memory);

// The `wanted` (>= 1) first candidates strictly after the cursor; in order where wanted <= ordered_most, else in any.
// out, on the device: the answer to one query, with found[0] at most wanted.
void first_after(const PositionValues& positions, const RowCursor& cursor, std::uint32_t wanted,
                 const SelectionSpace& space, const Answers& out, cudaStream_t stream);

// value(first, count) enqueues the values of all positions, in launches that each take a millisecond or two. Of rows
// whose vectors are read over the bus, remote_row_bytes are read each; else 0.
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
