// Rows in the dense form, with one small value for each of a number of functions, and queries of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pgwarp::cuda::matchcount
{

inline constexpr std::uint32_t most_dense_functions = 1024;
inline constexpr std::uint32_t most_dense_values = 256;

// Rows in device memory, by function. A value of at least `universe` matches none.
struct DenseRows {
    std::uint32_t rows = 0;
    std::uint32_t functions = 0;           // 1 to most_dense_functions
    std::uint32_t universe = 0;            // values of a function: 1 to most_dense_values
    std::size_t stride = 0;                // from function to function: a multiple of 16, at least `rows`
    const std::uint8_t* values = nullptr;  // [functions][stride]; 16-byte aligned
};

// Returns the least stride for a number of rows.
constexpr std::size_t dense_stride(std::uint32_t rows)
{
    return (std::size_t{rows} + 127) / 128 * 128;
}

struct DenseQueries {
    std::uint32_t count = 0;
    const std::uint8_t* values = nullptr;  // [count][functions]; device
    const std::uint32_t* dead = nullptr;   // bit i: row i is left out; null: none; device
};

}  // namespace pgwarp::cuda::matchcount
