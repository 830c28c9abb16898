// The rows that come next after a cursor in order of (value, row): what a continuation asks for.
//
// Radix selection over keys of 96 bits, value then row, 8 bits a pass; it stops when what is left is wanted whole.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/memory.h"

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

// Device memory of one call.
struct OrderedRows {
    OrderedRows(MemoryPool& pool, std::uint32_t wanted, cudaStream_t stream);

    DeviceArray<double> values;             // [wanted]
    DeviceArray<std::uint32_t> rows;        // [wanted]
    DeviceArray<std::uint32_t> found;       // [1]: how many, at most wanted
    DeviceArray<std::uint32_t> histograms;  // of each pass
    DeviceArray<std::byte> states;          // after each pass
};

// The `wanted` (>= 1) first candidates strictly after the cursor; in order where wanted <= ordered_most, else in any.
void first_after(const PositionValues& positions, const RowCursor& cursor, std::uint32_t wanted, OrderedRows& out,
                 cudaStream_t stream);

}  // namespace pgwarp::cuda::rows
