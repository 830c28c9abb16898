// Rows that searches for counts return, and the rows that they may have.
#pragma once

#include <cstdint>

namespace pgwarp::cuda::matchcount
{

// The rows first to last - 1.
struct RowWindow {
    std::uint32_t first;
    std::uint32_t last;
};

// Results, in memory that the device reaches.
struct CountedRows {
    std::uint32_t* rows = nullptr;    // [queries][k]
    std::uint32_t* counts = nullptr;  // [queries][k]; may be null
    std::uint32_t* found = nullptr;   // [queries]
    double* distances = nullptr;      // [queries][k]: minus the counts, of searches for the best; may be null
};

}  // namespace pgwarp::cuda::matchcount
